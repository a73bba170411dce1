"""For all tests."""

import os

# Test networks are tiny: handing their work from thread to thread costs more than doing it. Processes that tests start
# do the same, so that their sums are the same to the bit.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

torch.set_num_threads(1)
