"""The k-means loss."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tusk.losses.kmeans import kmeans_loss
from tusk.model.prototypes import Prototypes, distances


def unit(rng, *shape):
    return F.normalize(torch.tensor(rng.normal(size=shape)), dim=-1)


def test_kmeans_loss_is_the_papers_equation():
    rng = np.random.default_rng(1)
    prototypes = Prototypes(6, 4, "norm", 1.0).double()
    descriptors = unit(rng, 3, 5, 4)
    distance = (descriptors[:, :, None] - prototypes.unit()[None, None]).norm(dim=-1)
    expected = -F.softmax(-distance, -1).amax(-1).log().mean()
    assert kmeans_loss(prototypes.log_probability(descriptors)).item() == pytest.approx(expected.item(), abs=1e-6)
    squares = (descriptors[:, :, None] - prototypes.unit()[None, None]).square().mean(-1)
    torch.testing.assert_close(distances(descriptors, prototypes.unit(), "mean-square"), squares)
