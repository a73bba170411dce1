"""Ctrl-C and SIGTERM: the first asks to stop, a second ends the process at once.

Python runs its signal handlers between its own instructions only, so an operation of torch that takes a minute, or a
wait for another process, would hold up both. Where the process is our own (the command line), a thread therefore reads
the signals as the system delivers them, and ends the process itself where that is due. In somebody else's process, such
as a notebook, a second signal is a KeyboardInterrupt and nothing is ended.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from tusk.errors import EXIT_STOPPED, UserError

PATIENCE = 5.0  # seconds from a signal to the end of what does not come back to Python
_SAME = 2.0  # seconds: torchrun passes a Ctrl-C on that its processes have had already
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ours = False


def process_is_ours() -> None:
    """For the command line: signals may end this process."""
    global _ours
    if not _ours and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_leave_to_parent)
    _ours = True


def end_in_peace() -> None:
    """For a process of our own that ends with a sentence anyway: a SIGTERM does not end it before that is said.

    torchrun sends one to all processes as soon as one of them has died.
    """
    if _ours and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _leave_to_parent() -> None:
    """In a forked child: a Ctrl-C reaches it too, and must not count twice for the parent."""
    global _ours
    _ours = False
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)


class StopSignals:
    """What was asked for by signals. Until `defer`, the first one raises where the program is just then."""

    def __init__(self, stopped: Callable[[], UserError], ended: str) -> None:
        self.asked = False
        self._process = os.getpid()
        self._stopped, self._ended = stopped, ended
        self._deferred = False
        self._limit = float("inf")
        # Counted apart by the thread: it may know of a signal long before Python's handler does.
        self._handled_at: float | None = None
        self._seen_at: float | None = None

    def defer(self) -> None:
        """From here on the first signal is only noted: `asked` is to be looked at where it suits."""
        self._deferred = True

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """What is deferred and takes longer than this after a signal is ended; and PATIENCE at the least is waited."""
        self._limit = seconds
        try:
            yield
        finally:
            self._limit = float("inf")

    def handle(self, number: int, frame: object) -> None:  # noqa: ARG002 - signal gives them
        """Python's own handler, in the main thread."""
        if os.getpid() != self._process:
            return  # a forked child, as those that load images: its parent ends it
        now = time.monotonic()
        if self._handled_at is not None:
            if not _is_same(now - self._handled_at):
                raise KeyboardInterrupt
            return
        self._handled_at, self.asked = now, True
        if not self._deferred:
            raise self._stopped()

    def watch(self, reader: socket.socket) -> None:
        """In a thread: the numbers of the signals come through the socket, until it is closed."""
        while True:
            reader.settimeout(None if self._seen_at is None else 0.1)
            try:
                received = reader.recv(1)
            except TimeoutError:
                received = None
            except OSError:
                return
            now = time.monotonic()
            if received == b"":
                return
            if received is not None and received[0] in _SIGNALS:
                if self._seen_at is None:
                    self._seen_at = now
                elif not _is_same(now - self._seen_at):
                    self._end()
            waits = max(PATIENCE, self._limit) if self._deferred else PATIENCE
            if self._seen_at is not None and now - self._seen_at > waits:
                self._end()

    def _end(self) -> NoReturn:
        shown = "\x1b[?25h\n" if sys.stderr.isatty() else ""  # a progress bar hides the cursor
        os.write(2, f"{shown}tusk: {self._ended}\n".encode(errors="backslashreplace"))
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(EXIT_STOPPED)


def _is_same(seconds: float) -> bool:
    return seconds < _SAME and "TORCHELASTIC_RUN_ID" in os.environ


@contextmanager
def stop_signals(stopped: Callable[[], UserError], ended: str) -> Iterator[StopSignals]:
    """For the time of a block; blocks may lie within each other, and the innermost counts.

    stopped: what the first signal raises; ended: the sentence of a process that is ended without further ado.
    """
    signals = StopSignals(stopped, ended)
    if threading.current_thread() is not threading.main_thread():
        yield signals  # only the main thread may handle signals
        return
    before = {number: signal.signal(number, signals.handle) for number in _SIGNALS}
    try:
        if _ours:
            with _watched(signals):
                yield signals
        else:
            yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _watched(signals: StopSignals) -> Iterator[None]:
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    thread = threading.Thread(target=signals.watch, args=(reader,), daemon=True, name="tusk-signals")
    with reader, writer:
        former = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(former)
            writer.shutdown(socket.SHUT_WR)  # which ends the thread
            thread.join()
