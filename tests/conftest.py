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
    "tests/cli/test_doctor.py::test_a_sound_machine_is_well",
    "tests/cli/test_evaluate.py::test_the_verb_from_end_to_end",
    "tests/cli/test_main.py::test_import_authors_writes_a_model_that_opens",
    "tests/cli/test_report.py",
    "tests/cli/test_train.py",
    "tests/evaluation/test_evaluate.py",
    "tests/model/test_compressed.py::test_every_place_from_the_border_to_the_middle",
    "tests/report/test_build.py",
    "tests/system/",
    "tests/test_allocator.py::test_memory_that_was_used_is_not_faulted_in_again",
    "tests/training/test_distributed.py",
    "tests/training/test_run.py",
    "tests/training/test_trainer.py::test_a_compiled_step_is_the_same_step",
)

# Files that take long, longest first: one that began last would keep one core busy while the others have nothing to do.
FIRST = (
    "tests/system/test_kill_moments.py",
    "tests/system/test_training.py",
    "tests/system/test_torchrun.py",
    "tests/test_readme.py",
    "tests/system/test_detect.py",
    "tests/system/",
    "tests/training/",
    "tests/cli/",
    "tests/report/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
    items.sort(key=lambda item: next((n for n, name in enumerate(FIRST) if item.nodeid.startswith(name)), len(FIRST)))
