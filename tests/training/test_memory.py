"""The memory of descriptors."""

import torch

from tusk.training.memory import DescriptorMemory


def test_keeps_the_latest():
    memory = DescriptorMemory(5)
    for number in range(6):
        memory.add(torch.full((2, 1), float(number)))
    assert len(memory) == 5
    assert memory.latest(3)[:, 0].tolist() == [4, 5, 5]


def test_no_memory_keeps_only_the_newest_batch():
    memory = DescriptorMemory(0)
    memory.add(torch.zeros(4, 2))
    memory.add(torch.ones(3, 2))
    assert memory.latest().tolist() == [[1, 1]] * 3
