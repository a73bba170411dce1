"""The first signal stops, the second ends at once; whatever the process is just doing."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tusk.interrupts
from tusk.errors import StoppedError
from tusk.interrupts import stop_signals

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX knows them")
ROOT = Path(__file__).parents[1]
SCRIPT = """
import sys, time
import tusk.interrupts as interrupts
from tests.stuck import stuck
from tusk.errors import StoppedError, UserError
interrupts.PATIENCE = {patience}
interrupts.process_is_ours()
try:
    with interrupts.stop_signals(lambda: StoppedError("it", "stopped", "go on"), "it: ended at once.") as stop:
        print("ready", flush=True)
        {body}
except UserError as error:
    print(f"tusk: {{error}}", file=sys.stderr)
    sys.exit(error.exit_code)
"""
SLEEP, STUCK = "time.sleep(60)", "stuck()"
NOTE = "stop.defer(); [time.sleep(0.05) for _ in range(1200) if not stop.asked]; print('noted'); time.sleep({})"


def started(body, patience=60.0, **environment):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(patience=patience, body=body)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    return process


def ended(process):
    out, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_raises_where_nothing_is_deferred(number):
    process = started(SLEEP)
    process.send_signal(number)
    assert ended(process) == (130, "", "tusk: it: stopped; go on.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_what_does_not_come_back(number):
    process = started(STUCK)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert process.poll() is None, "one signal is an order to stop, and time is given for that"
    process.send_signal(number)
    assert ended(process) == (130, "", "tusk: it: ended at once.\n")


def test_what_does_not_come_back_is_ended_after_a_while():
    process = started(STUCK, patience=0.5)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (130, "", "tusk: it: ended at once.\n")


def test_what_is_deferred_is_noted_and_may_take_its_time():
    process = started(NOTE.format(1.5), patience=0.3)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (0, "noted\n", "")
    limited = "stop.defer()\n        with stop.limited(0.5): stuck()"
    process = started(limited, patience=0.3)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 130


def test_torchruns_copy_of_a_signal_is_no_second_one():
    process = started(NOTE.format(0.5), TORCHELASTIC_RUN_ID="none")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (0, "noted\n", "")


def test_a_forked_child_does_not_count_for_its_parent():
    lines = [
        "import os; child = os.fork()",
        "if child == 0: time.sleep(2); os._exit(0)",
        "print(child, flush=True); os.waitpid(child, 0); print('done')",
    ]
    process = started("\n        ".join(lines))
    child = int(process.stdout.readline())
    os.kill(child, signal.SIGINT)
    time.sleep(0.1)
    os.kill(child, signal.SIGINT)
    assert ended(process) == (0, "done\n", "")


def test_in_a_notebook_the_second_signal_is_a_keyboard_interrupt_and_handlers_come_back(monkeypatch):
    monkeypatch.setattr(tusk.interrupts, "_ours", False)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with (
        pytest.raises(KeyboardInterrupt),
        stop_signals(lambda: StoppedError("it", "stopped", "go on"), "never said.") as stop,
    ):
        stop.defer()
        signal.raise_signal(signal.SIGTERM)
        assert stop.asked
        signal.raise_signal(signal.SIGINT)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_in_another_thread_there_is_nothing_to_handle():
    asked = []

    def work():
        with stop_signals(lambda: StoppedError("it", "stopped", "go on"), "never said.") as stop:
            asked.append(stop.asked)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert asked == [False]
