"""Tells the C library to keep the memory that it has.

Big activations are otherwise taken from and given back to the system at every operation, and the page faults of that
cost more than the arithmetic: a U-Net of width 32 trains several times faster with this (`benchmarks/step.py`).
It has to happen before torch allocates. Set TUSK_ALLOCATOR=off to leave the C library as it is.
"""

from __future__ import annotations

import ctypes
import os
import platform

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3


def keep_memory() -> bool:
    """Do it; False where it was switched off or the C library is not glibc."""
    if os.environ.get("TUSK_ALLOCATOR", "on") == "off" or platform.system() != "Linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = ((_M_MMAP_THRESHOLD, 1 << 30), (_M_TRIM_THRESHOLD, (1 << 31) - 1), (_M_TOP_PAD, 256 << 20))
    return all(mallopt(what, value) == 1 for what, value in settings)
