"""The memory of descriptors, and k-means on it."""

import numpy as np
import torch
import torch.nn.functional as F

from tusk.training.memory import DescriptorMemory, kmeans_centres


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


def test_kmeans_finds_separate_clusters_and_fills_up():
    rng = np.random.default_rng(0)
    centres = torch.eye(3, 5)
    points = F.normalize(
        centres.repeat_interleave(40, 0) + torch.tensor(rng.normal(size=(120, 5))).float() * 0.05, dim=-1
    )
    found = kmeans_centres(points, 3, seed=0)
    assert ((found @ centres.T).amax(0) > 0.99).all()
    few = kmeans_centres(points[:2], 4, seed=0)
    assert few.shape == (4, 5)
    torch.testing.assert_close(few.norm(dim=-1), torch.ones(4))
