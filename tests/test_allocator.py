"""The allocator's settings can be switched off, and do what they are for."""

import subprocess
import sys

from tusk.allocator import keep_memory

_FAULTS = """
import resource, sys
from tusk.allocator import keep_memory
if sys.argv[1] == "on":
    assert keep_memory()
import torch
x = torch.ones(16 << 20)  # 64 MB: above what the C library learns to keep by itself
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        y = x + 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(), faults()
# The system may fault pages in on its own account (moving or merging them): that comes and goes, giving back does not.
print(min(faults() for _ in range(5)))
"""


def test_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("TUSK_ALLOCATOR", "off")
    assert keep_memory() is False


def test_memory_that_was_used_is_not_faulted_in_again():
    def faults(setting):
        done = subprocess.run([sys.executable, "-c", _FAULTS, setting], capture_output=True, text=True, check=True)
        return int(done.stdout)

    if not sys.platform.startswith("linux"):
        assert keep_memory() is False  # the settings are those of Linux's C library
        return
    assert faults("on") < 0.1 * max(faults("off"), 1000)
