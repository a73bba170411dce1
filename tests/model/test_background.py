"""The background behind the layers."""

import pytest
import torch

from tusk.model.background import Background, make_thumbnail


@pytest.mark.parametrize("kind", ["colour", "picture"])
def test_it_starts_as_one_colour_in_any_light(kind):
    background = Background(kind)
    background.start_at(torch.logit(torch.tensor([0.2, 0.5, 0.9])))
    for image in (torch.zeros(2, 3, 24, 40), torch.ones(2, 3, 24, 40)):
        shown = background(make_thumbnail(image), (24, 40)).expand(2, -1, -1, -1)
        expected = torch.tensor([0.2, 0.5, 0.9]).view(1, 3, 1, 1).expand(2, 3, 24, 40)
        torch.testing.assert_close(shown, expected)


def lit_scenes(count, seed):
    """A horizon that all share, under a lamp of its own for each."""
    generator = torch.Generator().manual_seed(seed)
    rows, columns = torch.linspace(0, 1, 32).view(1, 1, 32, 1), torch.linspace(-1, 1, 32).view(1, 1, 1, 32)
    horizon = torch.where(rows > 0.5, 0.6, 0.3).expand(count, 3, 32, 32)
    lamp = torch.rand(count, 1, 1, 1, generator=generator) * 0.3 - 0.15
    return (horizon + lamp * columns).clamp(0, 1)


def test_a_picture_learns_the_scene_and_its_light_but_no_things():
    torch.manual_seed(0)
    errors = {}
    unseen = lit_scenes(16, 99)
    for kind in ("colour", "picture"):
        background = Background(kind)
        optimiser = torch.optim.Adam(background.parameters(), 0.05)
        for step in range(150):
            scenes = lit_scenes(16, step)
            loss = (background(make_thumbnail(scenes), (32, 32)) - scenes).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        errors[kind] = (background(make_thumbnail(unseen), (32, 32)) - unseen).square().mean().item()
    assert errors["picture"] < 0.02 * errors["colour"]
    # A bright thing a fifth of the image wide lights the surroundings at most a little, and is not reconstructed.
    thing = unseen.clone()
    thing[:, :, 12:18, 12:18] = 1.0
    shown = background(make_thumbnail(thing), (32, 32))
    assert (shown - unseen)[:, :, 12:18, 12:18].abs().mean() < 0.2
