"""Many clients at once: what the server answers, how long that takes, and whether its memory stays.

    python benchmarks/serve_load.py --clients 32 --minutes 10

Starts `tusk serve` on a free port. First one client alone gives the usual time. Then all clients send pictures to
/api/detect as fast as they are answered; one that is told to come again waits as long as the answer says. At most
`--jobs` pictures wait in the server, so that a request may take as many times the usual time: "per job" is the time
over that number. Memory is the resident memory of the server's process after a first tenth, and at the end.
"""

from __future__ import annotations

import argparse
import http.client
import io
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from tusk.datasets import open as open_dataset

_ALONE = 20  # requests of one client


def picture_form() -> tuple[bytes, str]:
    """A picture as a browser would send it."""
    buffer = io.BytesIO()
    Image.fromarray(open_dataset("digits", split="test", count=1).image(0)).save(buffer, "PNG")
    head = b'--x\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\n\r\n'
    return head + buffer.getvalue() + b"\r\n--x--\r\n", "multipart/form-data; boundary=x"


def resident(process: int) -> int:
    """Bytes; Linux alone tells."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) * 1024 if found else 0


class Client:
    def __init__(self, port: int, form: tuple[bytes, str]) -> None:
        self._port, self._form = port, form
        self.statuses: Counter[int] = Counter()
        self.seconds: list[float] = []

    def once(self) -> float:
        """-> for how long it was told to wait."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        began = time.perf_counter()
        try:
            connection.request("POST", "/api/detect", self._form[0], {"content-type": self._form[1]})
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self.statuses[0] += 1
            return 0.1
        finally:
            connection.close()
        self.statuses[answer.status] += 1
        if answer.status == 200:
            self.seconds.append(time.perf_counter() - began)
        return float(answer.getheader("retry-after") or 0)

    def until(self, end: float) -> None:
        while time.monotonic() < end:
            time.sleep(min(self.once(), max(0.0, end - time.monotonic())))


def load(process: int, port: int, clients: int, seconds: float, jobs: int) -> bool:
    """-> whether all is as it should be."""
    form = picture_form()
    alone = Client(port, form)
    for _ in range(_ALONE + 3):
        alone.once()
    usual = float(np.percentile(alone.seconds[3:], 95))
    crowd = [Client(port, form) for _ in range(clients)]
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=client.until, args=(end,)) for client in crowd]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 10)
    before = resident(process)
    for thread in threads:
        thread.join()
    after = resident(process)
    statuses = sum((client.statuses for client in crowd), Counter[int]())
    times = np.array([value for client in crowd for value in client.seconds])
    slow = float(np.percentile(times, 95))
    growth = after / before - 1
    print(f"answers: {dict(sorted(statuses.items()))}, {statuses[200] / seconds:.1f} pictures a second")
    print(f"one client, p95: {1000 * usual:.0f} ms; {clients} clients, p95: {1000 * slow:.0f} ms")
    print(f"per job: {slow / jobs / usual:.2f} times one client's time ({jobs} jobs)")
    print(f"memory: {before / 1e6:.0f} MB, then {after / 1e6:.0f} MB: {100 * growth:+.1f}%")
    well = set(statuses) <= {200, 503} and growth < 0.05 and slow / jobs < 4 * usual
    print("well" if well else "NOT as it should be")
    return well


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--model", default="mnist-hard")
    flags.add_argument("--clients", type=int, default=32)
    flags.add_argument("--minutes", type=float, default=10.0)
    flags.add_argument("--jobs", type=int, default=8)
    chosen = flags.parse_args()
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "tusk", "serve", chosen.model, "--port", "0", "--jobs", str(chosen.jobs)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=place)
        try:
            assert process.stdout is not None
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found is not None, "the server did not start"
            well = load(process.pid, int(found[1]), chosen.clients, 60 * chosen.minutes, chosen.jobs)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    print(f"the server ended with {process.returncode}")
    sys.exit(0 if well and process.returncode == 0 else 1)


if __name__ == "__main__":
    main()
