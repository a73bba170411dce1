"""Vector quantisation."""

import numpy as np
import torch
import torch.nn.functional as F

from tusk.losses.quantisation import vector_quantisation


def unit(rng, *shape):
    return F.normalize(torch.tensor(rng.normal(size=shape)), dim=-1)


def test_vector_quantisation_goes_straight_through():
    rng = np.random.default_rng(2)
    descriptors = unit(rng, 4, 3, 5).requires_grad_()
    prototypes = unit(rng, 6, 5).requires_grad_()
    quantised, loss = vector_quantisation(descriptors, prototypes)
    nearest = (descriptors[:, :, None] - prototypes).square().sum(-1).argmin(-1)
    torch.testing.assert_close(quantised, prototypes[nearest])
    weight = torch.tensor(rng.normal(size=(4, 3, 5)))
    (through,) = torch.autograd.grad((quantised * weight).sum(), descriptors, retain_graph=True)
    torch.testing.assert_close(through, weight)
    to_descriptors, to_prototypes = torch.autograd.grad(loss, [descriptors, prototypes])
    assert to_descriptors.abs().sum() > 0 and to_prototypes.abs().sum() > 0
