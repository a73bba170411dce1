"""Scores and sizes that an image and its mirror images agree on."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Maps = tuple[Tensor, Tensor, Tensor | None]  # feature map, score map, radius map: (B, C or 1, h, w) each


def encode_views(encode: Callable[[Tensor], Maps], image: Tensor, views: int) -> Maps:
    """image (B, 3, H, W) -> its maps; score map the mean and radius map the geometric mean over so many views, 1 to 4.

    What is a thing does not depend on how the picture lies, but what a network is unsure of does: the mean drops the
    parts of things that it takes for things in one view and not in another. The feature map stays that of the image as
    it is: which type a thing has may depend on how it lies.
    """
    feature_map, score_map, radius_map = encode(image)
    scores, logarithms = score_map, None if radius_map is None else radius_map.log()
    for view in range(1, views):
        _, score, radius = encode(mirrored(image, view))
        scores = scores + mirrored(score, view)
        if logarithms is not None and radius is not None:
            logarithms = logarithms + mirrored(radius, view).log()
    if views == 1:
        return feature_map, score_map, radius_map
    return feature_map, scores / views, None if logarithms is None else (logarithms / views).exp()


def mirrored(maps: Tensor, view: int) -> Tensor:
    """(..., H, W): as it is (0), left for right (1), upside down (2) or both (3). Twice is as it was."""
    directions = [direction for bit, direction in ((1, -1), (2, -2)) if view & bit]
    return maps.flip(directions) if directions else maps
