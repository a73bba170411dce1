"""For all tests."""

import torch

# Test networks are tiny: handing their work from thread to thread costs more than doing it.
torch.set_num_threads(1)
