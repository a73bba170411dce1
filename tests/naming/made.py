"""Points of two kinds, and models for names."""

import numpy as np

from tusk.detection.detections import Detections
from tusk.naming import Naming


def naming(types=4):
    return Naming(model="0" * 64, types=types)


def unit(values):
    values = np.asarray(values, float)
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def clusters(sizes, channels=8, spread=0.15, seed=0):
    """-> descriptors (N, C) around random directions, and which cluster each is of."""
    rng = np.random.default_rng(seed)
    middles = unit(rng.standard_normal((len(sizes), channels)))
    kinds = np.repeat(np.arange(len(sizes)), sizes)
    noise = spread * rng.standard_normal((len(kinds), channels))
    return unit(middles[kinds] + noise), kinds


def detections(types, descriptors=None, xy=None, **values):
    number = len(types)
    ones = np.ones(number)
    return Detections(
        source="a.png",
        width=100,
        height=80,
        xy=np.stack([10.0 + 8 * np.arange(number), np.full(number, 20.0)], 1) if xy is None else np.array(xy, float),
        type=np.array(types, np.int64),
        score=ones * 0.5,
        gain=ones,
        probability=ones,
        descriptor=np.eye(8)[np.array(types, np.int64) % 8] if descriptors is None else descriptors,
        instance=np.arange(number),
        box_side=5.0,
        **values,
    )
