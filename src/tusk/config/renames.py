"""Settings that had another name or another value before, so that stored models and YAML files still load."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

# Old dotted name -> new dotted name, or several.
RENAMED: dict[str, tuple[str, ...]] = {
    "losses.contrast": ("losses.info_nce",),
    "losses.votes": ("losses.pseudo_labels",),
    "losses.flat": ("losses.uniform_region",),
    "losses.opacity.halves": ("losses.opacity.binarity",),
    "losses.equivariance.score_weight": ("losses.score_equivariance.weight",),
    "losses.equivariance.feature_weight": ("losses.feature_equivariance.weight",),
    "losses.equivariance.features": ("losses.feature_equivariance.features",),
    "losses.equivariance.masked": ("losses.score_equivariance.masked", "losses.feature_equivariance.masked"),
    "model.layer_tint": ("model.layer_base_colour",),
    "model.mask_tolerance": ("detection.mask_tolerance",),
    "model.second_looks": ("detection.relocate_keypoints",),
    "model.relocate_keypoints": ("detection.relocate_keypoints",),
    "model.join_parts": ("detection.merge_fragments_above",),
    "model.merge_fragments_above": ("detection.merge_fragments_above",),
    "training.islands_by_looks": ("training.reassign_by_appearance",),
    "training.revive_every": ("training.restart_dead_every",),
}
# (Dotted name, old value) -> the settings that take its place.
RENAMED_VALUES: dict[tuple[str, str], dict[str, Any]] = {
    ("data.fit", "pieces"): {"data.fit": "tiles"},
    ("losses.prototypes.kind", "vector-quantisation"): {
        "losses.prototypes.kind": "k-means",
        "losses.quantisation.weight": 1.0,
    },
}
# Dotted name of a setting that is gone -> the value that is built in instead.
REMOVED: dict[str, Any] = {
    "detection.blob_candidates": None,
    "losses.mutual_information.temperature": 0.1,
    "losses.prototypes.noise": 0.02,
    "losses.prototypes.projections": 100,
    "losses.pseudo_labels.temperature": 0.1,
    "training.first_warp.colour_jitter": 0.0,
    "training.first_warp.holes": None,
    "training.second_warp.colour_jitter": 0.0,
    "training.second_warp.holes": None,
}
_END = 0.999  # a point of a schedule after this share of the training changed nothing but the final model


def upgrade(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """-> the values under today's names, and a sentence for each change that its author should know of."""
    upgraded, said = _copy(values), []
    for old, new in RENAMED.items():
        found, value = _take(upgraded, old)
        if found:
            for name in new:
                _put(upgraded, name, value)
            names = "' and '".join(new)
            said.append(f"'{old}' is now called '{names}'")
    for (name, old_value), settings in RENAMED_VALUES.items():
        part, last = _part(upgraded, name)
        if part is not None and part.get(last) == old_value:
            del part[last]
            for new_name, value in settings.items():
                _put(upgraded, new_name, value)
            now = " with ".join(f"'{new_name}: {value}'" for new_name, value in settings.items())
            said.append(f"'{name}: {old_value}' is now {now}")
    for name, built_in in REMOVED.items():
        found, value = _take(upgraded, name)
        if found and value != built_in:
            said.append(f"'{name}' is no longer a setting: {value} is ignored, and it is always {built_in}")
    if _split_window(upgraded):
        said.append("a 'training.window' that jumps at its end is now 'model.window' and 'detection.window'")
    return upgraded, tuple(said)


def _split_window(values: dict[str, Any]) -> bool:
    """A schedule of the window that only jumped in the last thousandth was a window for detection in disguise."""
    training, _ = _part(values, "training.window")
    points = None if training is None else training.get("window")
    if training is None or not isinstance(points, list | tuple) or len(points) < 2 or not _are_points(points):
        return False  # a fault in it is found later, with all others
    parts = [values.setdefault(name, {}) for name in ("model", "detection")]
    if points[-2][0] < _END or not all(isinstance(part, dict) for part in parts):
        return False
    parts[0]["window"] = int(points[-2][1])
    parts[1].setdefault("window", int(points[-1][1]))
    training["window"] = points[:-1] if len(points) > 2 else None
    return True


def _are_points(points: Sequence[Any]) -> bool:
    """Whether all are pairs of finite numbers."""
    pairs = [point for point in points if isinstance(point, list | tuple) and len(point) == 2]
    numbers = [value for pair in pairs for value in pair if isinstance(value, int | float)]
    return len(numbers) == 2 * len(points) and all(map(math.isfinite, numbers))


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in values.items()}


def _part(values: dict[str, Any], name: str) -> tuple[dict[str, Any] | None, str]:
    """The mapping that holds the setting of this dotted name, None where there is none; and its last word."""
    *path, last = name.split(".")
    part: Any = values
    for word in path:
        part = part.get(word) if isinstance(part, dict) else None
    return (part if isinstance(part, dict) else None), last


def _take(values: dict[str, Any], name: str) -> tuple[bool, Any]:
    """Take a setting out, and the part that held it where nothing else is left there."""
    part, last = _part(values, name)
    if part is None or last not in part:
        return False, None
    value = part.pop(last)
    if not part and "." in name.rpartition(".")[0]:
        _take(values, name.rpartition(".")[0])
    return True, value


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    """A value that is already there under the new name wins: a file may hold both while it is being edited."""
    *path, last = name.split(".")
    part: Any = values
    for word in path:
        part = part.setdefault(word, {})
        if not isinstance(part, dict):
            return  # that is found later, with all other faults
    part.setdefault(last, value)
