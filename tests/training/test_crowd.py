"""Things of one image laid into another: they and nothing else."""

import torch

from tusk.training.crowd import crowded


def scene(*squares):
    """A grey floor that gets brighter to the right, with squares (x, y, side, colour)."""
    image = torch.linspace(0.3, 0.5, 40).expand(1, 3, 40, 40).clone()
    for x, y, side, colour in squares:
        image[0, :, y : y + side, x : x + side] = torch.tensor(colour).view(3, 1, 1)
    return image


def test_the_others_things_stand_where_they_stood_and_the_rest_is_as_before():
    floor = scene()
    ours, theirs = scene((3, 3, 9, (1.0, 0.0, 0.0))), scene((20, 8, 10, (0.0, 0.0, 1.0)), (8, 25, 6, (0.0, 0.9, 0.0)))
    both = scene((3, 3, 9, (1.0, 0.0, 0.0)), (20, 8, 10, (0.0, 0.0, 1.0)), (8, 25, 6, (0.0, 0.9, 0.0)))
    assert torch.equal(crowded(ours, theirs, floor), both)


def test_what_was_laid_in_is_in_front():
    floor = scene()
    ours, theirs = scene((10, 10, 12, (1.0, 0.0, 0.0))), scene((14, 14, 12, (0.0, 0.0, 1.0)))
    wanted = scene((10, 10, 12, (1.0, 0.0, 0.0)), (14, 14, 12, (0.0, 0.0, 1.0)))
    assert torch.equal(crowded(ours, theirs, floor), wanted)


def test_a_faint_shadow_and_a_single_pixel_are_no_things():
    floor = scene()
    theirs = scene((20, 8, 10, (0.0, 0.0, 1.0)))
    wanted = theirs.clone()
    theirs[..., 20:26, 20:32] -= 0.05
    theirs[..., 35, 5] = 1.0
    assert torch.equal(crowded(floor, theirs, floor), wanted)


def test_an_empty_image_adds_nothing():
    ours = scene((3, 3, 9, (1.0, 0.0, 0.0)))
    assert torch.equal(crowded(ours, scene(), scene()), ours)
