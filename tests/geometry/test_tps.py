"""The spline is the authors', passes through its points, and can be inverted."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.read import read_golden
from tusk.geometry.tps import fit_spline


def test_golden_grid():
    golden = {key: torch.tensor(value) for key, value in read_golden("tps").items()}
    spline = fit_spline(golden["control_points"].double(), (golden["control_points"] + golden["displacement"]).double())
    x, y = torch.linspace(-1, 1, 24).double(), torch.linspace(-1, 1, 20).double()
    points = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).view(1, -1, 2).expand(3, -1, -1)
    torch.testing.assert_close(spline(points).view(3, 20, 24, 2).float(), golden["grid"], atol=1e-5, rtol=0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_passes_through_its_points_and_back(seed):
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid([-0.8, 0.0, 0.8], [-0.8, 0.0, 0.8]), -1).reshape(1, 9, 2)
    source = torch.tensor(grid + rng.uniform(-0.1, 0.1, (2, 9, 2)))
    target = source + torch.tensor(rng.uniform(-0.08, 0.08, (2, 9, 2)))
    spline = fit_spline(source, target)
    torch.testing.assert_close(spline(source), target, atol=1e-8, rtol=0)
    points = torch.tensor(rng.uniform(-0.9, 0.9, (2, 30, 2)))
    torch.testing.assert_close(spline(spline.inverse(points)), points, atol=1e-7, rtol=0)


def test_an_affine_map_is_reproduced_exactly():
    source = torch.tensor([[[-1.0, -1], [1, -1], [-1, 1], [1, 1], [0.2, 0.1]]]).double()
    matrix, shift = torch.tensor([[0.9, 0.2], [-0.1, 1.1]]).double(), torch.tensor([0.05, -0.1]).double()
    spline = fit_spline(source, source @ matrix + shift)
    points = torch.rand(1, 50, 2).double()
    torch.testing.assert_close(spline(points), points @ matrix + shift)
    assert spline.kernel.abs().max() < 1e-9
