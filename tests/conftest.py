"""For all tests."""

import os

# Test networks are tiny: handing their work from thread to thread costs more than doing it. Processes that tests start
# do the same, so that their sums are the same to the bit.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)

# `make quick` leaves these out, beside what is marked slow in its own file: whole commands, other processes, training.
SLOW = (
    "tests/cli/test_demo.py",
    "tests/system/",
    "tests/training/test_distributed.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
