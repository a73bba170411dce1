"""Scores and sizes that an image, its mirror images and its quarter turns agree on."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Maps = tuple[Tensor, Tensor, Tensor | None]  # feature map, score map, radius map: (B, C or 1, h, w) each


def encode_views(encode: Callable[[Tensor], Maps], image: Tensor, views: int) -> Maps:
    """image (B, 3, H, W) -> its maps; score map the mean and radius map the geometric mean over so many views, 1 to 8.

    What is a thing does not depend on how the picture lies, but what a network is unsure of does: the mean drops the
    parts of things that it takes for things in one view and not in another. The feature map stays that of the image as
    it is: which type a thing has may depend on how it lies.
    """
    feature_map, score_map, radius_map = encode(image)
    scores, logarithms = score_map, None if radius_map is None else radius_map.log()
    for view in range(1, views):
        _, score, radius = encode(mirrored(image, view).contiguous())
        scores = scores + mirrored_back(score, view)
        if logarithms is not None and radius is not None:
            logarithms = logarithms + mirrored_back(radius, view).log()
    if views == 1:
        return feature_map, score_map, radius_map
    return feature_map, scores / views, None if logarithms is None else (logarithms / views).exp()


def mirrored(maps: Tensor, view: int) -> Tensor:
    """(..., H, W) in one of its eight positions; 0 is as it is, and of those from 4 on rows are columns."""
    if view & 1:
        maps = maps.flip(-1)
    if view & 2:
        maps = maps.flip(-2)
    return maps.mT if view & 4 else maps


def mirrored_back(maps: Tensor, view: int) -> Tensor:
    """The inverse of `mirrored`."""
    if view & 4:
        maps = maps.mT
    if view & 2:
        maps = maps.flip(-2)
    return maps.flip(-1) if view & 1 else maps
