"""What a result cannot show by itself: that keypoints ran out, that things are too close together, or too small.

A count is only as good as these: a picture that used all of its keypoints may hold more things, and of two things
within one window of non-maximum suppression only one is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from tusk.detection.detections import Detections

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Peaks lie at least half a window apart; the soft-argmax then moves them by a little.
_CLOSE = 1.2
_SMALL = 2.0  # pixels of the feature map across, below which a shape is not to be told from a dot
# Shares of the points from which it is mentioned: a few things that touch, or hide behind others, are no fault.
_MANY_CROWDED, _MANY_SMALL, _FEW = 0.25, 0.1, 3


@dataclass(frozen=True)
class Limits:
    """Of one picture, or of many together (their sum)."""

    pictures: int = 0
    at_limit: int = 0  # pictures that used all of their keypoints
    limit: tuple[int, int] = (0, 0)  # the least and the most keypoints that such pictures could have
    tiled: bool = False  # a tile of a picture has a limit of its own, too
    points: int = 0
    crowded: int = 0  # points that lie as close to another one as the window lets them
    masks: int = 0  # points with a mask
    small: int = 0  # masks that are smaller than `visible` across
    visible: float = 0.0  # pixels of a picture; the most of all pictures

    def __add__(self, other: Limits) -> Limits:
        known = [one.limit for one in (self, other) if one.at_limit]
        return Limits(
            pictures=self.pictures + other.pictures,
            at_limit=self.at_limit + other.at_limit,
            limit=(min(low for low, _ in known), max(high for _, high in known)) if known else (0, 0),
            tiled=self.tiled or other.tiled,
            points=self.points + other.points,
            crowded=self.crowded + other.crowded,
            masks=self.masks + other.masks,
            small=self.small + other.small,
            visible=max(self.visible, other.visible),
        )

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Limits:
        low, high = values["limit"]
        return Limits(**{**values, "limit": (int(low), int(high))})


def limits_of(found: Detections) -> Limits:
    """What was reached in one picture."""
    areas = None if found.mask_map is None else np.bincount(found.mask_map.ravel())
    own = np.zeros(0, np.int64)
    if areas is not None and len(found):
        own = np.append(areas, np.zeros(int(found.instance.max()) + 2, np.int64))[found.instance + 1]
    limit = found.limit or 0
    return Limits(
        pictures=1,
        at_limit=int(found.at_limit),
        limit=(limit, limit) if found.at_limit else (0, 0),
        tiled=found.tiled,
        points=len(found),
        crowded=count_crowded(found.xy, found.box_side / 2),
        masks=int((own > 0).sum()),
        small=count_small(own, found.resolution),
        visible=round(_SMALL * found.resolution, 1),
    )


def count_crowded(xy: FloatArray, apart: float) -> int:
    """How many of the points (N, 2) have another one about as near as it can be; apart: half a window."""
    if len(xy) < 2:
        return 0
    nearest = cKDTree(xy).query(xy, k=2, p=math.inf)[0][:, 1]  # windows are squares
    return int((nearest < _CLOSE * apart).sum())


def count_small(areas: IntArray, resolution: float) -> int:
    """How many of the masks, of these areas, are smaller than two pixels of the feature map across.

    resolution: the side of such a pixel in the unit of the areas. A mask of no area is hidden, not small.
    """
    return int(((areas > 0) & (areas < (_SMALL * resolution) ** 2)).sum())


def limit_remarks(limits: Limits, min_gain: float) -> list[str]:
    """What is to be said about a result, each with what to do; nothing where no limit was reached."""
    return [*_keypoints(limits, min_gain), *_crowded(limits), *_small(limits)]


def _keypoints(limits: Limits, min_gain: float) -> list[str]:
    if not limits.at_limit:
        return []
    low, high = limits.limit
    which = f"{limits.at_limit:,} of {_pictures(limits.pictures)}"
    every = f"all {low:,} keypoints" if low == high else f"all of their {low:,} to {high:,} keypoints"
    if limits.tiled:
        which += ", or tiles of them,"
    if min_gain <= 0:  # nearly nothing is ever left out, so a picture has as many points as it may have
        return [
            f"{which} used {every}: raise --keypoints if things are missed. No least gain is set, so this may be how "
            "many points were asked for, not how many things there are: --min-gain leaves out those that explain "
            "little."
        ]
    return [f"{which} used {every}: raise --keypoints, there may be more things than were counted."]


def _crowded(limits: Limits) -> list[str]:
    if limits.crowded < max(_FEW, _MANY_CROWDED * limits.points):
        return []
    return [
        f"{limits.crowded:,} of {limits.points:,} points lie as close together as the network can tell points apart: "
        "things between them may be missed. Try a smaller --detection.window, or train on larger images (--data.size)."
    ]


def _small(limits: Limits) -> list[str]:
    if limits.small < max(_FEW, _MANY_SMALL * limits.masks):
        return []
    return [
        f"{limits.small:,} of {limits.masks:,} things came out smaller than the network can see (about "
        f"{limits.visible:g} pixels across): train on larger images (--data.size), or on tiles at a larger scale "
        "(--data.fit tiles --data.scale)."
    ]


def _pictures(count: int) -> str:
    return "1 picture" if count == 1 else f"{count:,} pictures"
