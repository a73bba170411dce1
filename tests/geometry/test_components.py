"""Components against scipy's, and sizes of things whose size is known."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from tusk.geometry.components import find_components, label_components


@pytest.mark.parametrize("share", [0.1, 0.45, 0.6, 0.95])
def test_labels_are_those_of_scipy(share):
    mask = np.random.default_rng(3).random((4, 31, 26)) < share
    labels = label_components(torch.from_numpy(mask)).numpy()
    for ours, one in zip(labels, mask, strict=True):
        theirs, count = ndimage.label(one)
        assert len(np.unique(ours[one])) == count
        assert len({(a, b) for a, b in zip(ours[one], theirs[one], strict=True)}) == count
        assert (ours[~one] == -1).all()


def test_a_snake_is_one_component():
    mask = torch.zeros(1, 41, 41, dtype=torch.bool)
    mask[0, ::4] = True
    mask[0, 1:40, 40] = mask[0, 1:40, 0] = True
    mask[0, 2::8, 40] = mask[0, 6::8, 0] = False
    assert len(label_components(mask)[mask].unique()) == 1


def test_centre_size_and_edge():
    y, x = torch.meshgrid(torch.arange(60.0), torch.arange(80.0), indexing="ij")
    disc = (x - 30).square() + (y - 20).square() <= 12**2
    ring = ((x - 60).square() + (y - 40).square()).sqrt().sub(9).abs() <= 1
    bar = (y >= 50) & (x <= 19)
    found = find_components(torch.stack([disc | ring | bar, torch.zeros_like(disc)]), 5)
    assert found.found.tolist() == [[True, True, True, False, False], [False] * 5]
    torch.testing.assert_close(found.xy[0, :3], torch.tensor([[30.0, 20.0], [9.5, 54.5], [60.0, 40.0]]))
    assert found.radius[0, 0] == pytest.approx(12, rel=0.02)
    assert found.radius[0, 1] == pytest.approx(np.sqrt(2 * (20**2 + 10**2) / 12), rel=1e-4)
    assert found.radius[0, 2] == pytest.approx(np.sqrt(2) * 9, rel=0.02)
    assert found.cut[0, :3].tolist() == [False, True, False]
    assert (found.label[0][disc] == 0).all() and (found.label[0][bar] == 1).all() and (found.label[1] == 5).all()


def test_those_that_find_no_slot_are_background():
    mask = torch.zeros(1, 9, 9, dtype=torch.bool)
    mask[0, 1, 1:4] = mask[0, 5, 5] = True
    found = find_components(mask, 1)
    assert found.found.tolist() == [[True]] and found.label[0, 1, 2] == 0 and found.label[0, 5, 5] == 1
