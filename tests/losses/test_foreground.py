"""Where the background does not explain the image, and scores that follow it."""

import torch

from tusk.losses.foreground import background_residual, foreground_loss


def scene():
    """A grey room with a bright and a pale object, and the empty room."""
    room = torch.full((1, 3, 24, 24), 0.5)
    image = room.clone()
    image[:, :, 4:10, 4:10] = 1.0
    image[:, :, 14:20, 12:20] = 0.7
    return image, room


def test_residual_by_hand():
    image, room = scene()
    residual = background_residual(image, room, stride=2)
    assert residual.shape == (1, 1, 12, 12)
    error = ((image - room) ** 2).mean(1)
    pooled = torch.stack([error[0, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for i in range(12) for j in range(12)])
    torch.testing.assert_close(residual.flatten(), pooled / (pooled + error.mean() + 1e-8))


def test_a_pale_object_still_counts_beside_a_bright_one():
    image, room = scene()
    residual = background_residual(image, room, stride=1)[0, 0]
    assert residual[6, 6] > 0.8 and residual[16, 15] > 0.6
    assert residual[0, 0] < 0.01 and residual[22, 2] < 0.01


def test_an_image_like_its_background_is_all_explained():
    _, room = scene()
    assert background_residual(room, room, 1).max() == 0


def test_sides_that_the_stride_does_not_divide():
    image = torch.rand(2, 3, 9, 11)
    assert background_residual(image, torch.zeros(1, 3, 9, 11), 2).shape == (2, 1, 5, 6)


def test_scores_that_follow_lower_the_loss_and_constant_ones_stay_finite():
    image, room = scene()
    residual = background_residual(image, room, 1)
    random = torch.rand(residual.shape, generator=torch.Generator().manual_seed(0))
    same, other, constant = (
        float(foreground_loss(score, residual, 1)) for score in (residual, random, torch.ones_like(residual))
    )
    assert same < 1e-5 < other
    assert constant == 1


def test_descent_puts_the_peak_in_the_middle_of_an_object():
    image, room = torch.zeros(1, 3, 25, 25), torch.zeros(1, 3, 25, 25)
    image[:, :, 8:17, 6:15] = 1.0  # its middle is row 12, column 10
    residual = background_residual(image, room, 1)
    score = torch.zeros(1, 1, 25, 25, requires_grad=True)
    optimiser = torch.optim.Adam([score], 0.05)
    for _ in range(200):
        optimiser.zero_grad()
        foreground_loss(torch.sigmoid(score), residual, 9).backward()
        optimiser.step()
    assert divmod(int(score.detach().argmax()), 25) == (12, 10)
