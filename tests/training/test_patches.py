"""Small pictures of the places of keypoints."""

import torch

from tusk.training.patches import crop_patches, most_similar, patch_vectors


def test_a_square_around_each_place():
    images = torch.rand(2, 3, 40, 60, generator=torch.Generator().manual_seed(0))
    xy = torch.tensor([[[20.5, 12.5], [30.5, 25.5]], [[9.5, 14.5], [50.5, 30.5]]])  # between pixels: 8 to each side
    patches = crop_patches(images, xy, 16.0)
    assert patches.shape == (2, 2, 3, 16, 16) and patches.dtype == torch.uint8
    for image in range(2):
        for place in range(2):
            x, y = (int(value) for value in xy[image, place])
            expected = (images[image, :, y - 7 : y + 9, x - 7 : x + 9] * 255).round()
            assert (patches[image, place] - expected).abs().max() <= 1


def test_a_wider_square_shows_more_and_what_is_outside_is_black():
    images = torch.full((1, 3, 40, 40), 0.5)
    images[..., :20] = 1.0
    patches = crop_patches(images, torch.tensor([[[0.0, 20.0], [20.0, 20.0]]]), 32.0)[0]
    assert (patches[0, :, :, :7] == 0).all() and (patches[0, :, :, 9:] == 255).all()
    assert (patches[1, :, :, :7] == 255).all() and (patches[1, :, :, 9:] == 128).all()


def alike(patches, others, count):
    return most_similar(patch_vectors(patches), patch_vectors(others), count)


def test_most_alike_whatever_the_brightness_and_above_all_in_the_middle():
    generator = torch.Generator().manual_seed(0)
    patches = torch.randint(0, 120, (5, 3, 16, 16), generator=generator, dtype=torch.uint8)
    assert alike(patches[2:3] * 2, patches, 1).tolist() == [[2]]
    other = torch.randint(0, 120, (3, 16, 16), generator=generator, dtype=torch.uint8)
    rim, middle = patches[0].clone(), patches[0].clone()
    rim[:, :3], rim[:, -3:] = other[:, :3], other[:, -3:]
    middle[:, 5:11] = other[:, 5:11]  # as many pixels
    assert alike(patches[:1], torch.stack([middle, rim]), 2).tolist() == [[1, 0]]
    assert alike(patches, patches[:3], 10).shape == (5, 3)
