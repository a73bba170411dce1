"""What rays meet in a CLEVR scene: the things, the ground and the wall behind it, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tusk.data.dataset import Float32Array, Int64Array
from tusk.data.synthetic.clevr.light import Lamp, backdrop
from tusk.data.synthetic.clevr.shapes import FAR, Body, BoolArray, first_hit, near, normals_at


@dataclass(frozen=True)
class Stage:
    """A scene made ready for rays."""

    bodies: tuple[Body, ...]
    colours: Float32Array  # (things, 3) linear light that each thing reflects
    metal: BoolArray  # (things,)
    lamps: tuple[Lamp, ...]  # with many shadow samples, for what the camera sees
    mirror_lamps: tuple[Lamp, ...]  # with few, for what shows in reflections
    eye: Float32Array  # (3, 1) where the camera is
    pixel: float  # width of a pixel at distance 1
    cull: bool = True  # False: test every ray against every body (slow; for comparison)


@dataclass(frozen=True)
class Hits:
    """Points that rays have met. Owner -1 is the ground or the wall, or nothing where `visible` is False."""

    points: Float32Array  # (3, n)
    normals: Float32Array  # (3, n)
    views: Float32Array  # (3, n) unit directions in which the rays went
    owners: Int64Array  # (n,) number of the thing
    bends: Float32Array  # (n,) curvature of the surface
    visible: BoolArray  # (n,)

    def take(self, chosen: Int64Array) -> Hits:
        columns = (self.points[:, chosen], self.normals[:, chosen], self.views[:, chosen])
        return Hits(*columns, self.owners[chosen], self.bends[chosen], self.visible[chosen])


def nearest_things(
    stage: Stage, origins: Float32Array, views: Float32Array, leaving: Int64Array | None = None
) -> tuple[Int64Array, Float32Array]:
    """Which thing each ray meets first (n,), -1 for none, and at what distance."""
    count = views.shape[1]
    nearest = np.full(count, FAR, dtype=np.float32)
    owners = np.full(count, -1, dtype=np.int64)
    starts = np.broadcast_to(origins, views.shape)
    for number, body in enumerate(stage.bodies):
        candidates = near(body, origins, views) if stage.cull else np.ones(count, dtype=np.bool_)
        if leaving is not None:
            candidates &= leaving != number
        chosen = np.flatnonzero(candidates)
        distance = first_hit(body, starts[:, chosen], views[:, chosen])
        closer = distance < nearest[chosen]
        nearest[chosen[closer]] = distance[closer]
        owners[chosen[closer]] = number
    return owners, nearest


def trace(stage: Stage, origins: Float32Array, views: Float32Array, leaving: Int64Array | None = None) -> Hits:
    """What rays (3, n) with unit directions meet first.

    `origins` may be (3, 1). `leaving` (n,) names the thing that a ray starts from: being convex, it is not met again.
    """
    owners, nearest = nearest_things(stage, origins, views, leaving)
    starts = np.broadcast_to(origins, views.shape)
    around = backdrop(starts, views)
    points, normals, visible = around.points, around.normals, around.visible
    bends = np.zeros(owners.size, dtype=np.float32)
    for number, body in enumerate(stage.bodies):
        own = np.flatnonzero(owners == number)
        points[:, own] = starts[:, own] + nearest[own] * views[:, own]
        normals[:, own], bends[own] = normals_at(body, points[:, own])
        visible[own] = True
    return Hits(points, normals, views, owners, bends, visible)
