"""Settings that had another name or another value before, so that stored models and YAML files still load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Old dotted name -> new dotted name.
RENAMED = {
    "losses.contrast": "losses.info_nce",
    "losses.votes": "losses.pseudo_labels",
    "losses.flat": "losses.uniform_region",
    "losses.opacity.halves": "losses.opacity.binarity",
    "model.layer_tint": "model.layer_base_colour",
    "model.mask_tolerance": "detection.mask_tolerance",
    "model.second_looks": "detection.relocate_keypoints",
    "model.relocate_keypoints": "detection.relocate_keypoints",
    "model.join_parts": "detection.merge_fragments_above",
    "model.merge_fragments_above": "detection.merge_fragments_above",
    "training.islands_by_looks": "training.reassign_by_appearance",
    "training.revive_every": "training.restart_dead_every",
}
# (Dotted name, old value) -> new value.
RENAMED_VALUES = {("data.fit", "pieces"): "tiles"}
_JUMP = 0.999  # a schedule's points after this share of the training changed nothing but the final model


def upgrade(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """-> the values under today's names, and a sentence for each that was renamed."""
    upgraded, said = _copy(values), []
    for old, new in RENAMED.items():
        found, value = _take(upgraded, old.split("."))
        if found:
            _put(upgraded, new.split("."), value)
            said.append(f"'{old}' is now called '{new}'")
    for (name, old_value), new_value in RENAMED_VALUES.items():
        path = name.split(".")
        part = _part(upgraded, path[:-1])
        if part is not None and part.get(path[-1]) == old_value:
            part[path[-1]] = new_value
            said.append(f"'{name}: {old_value}' is now '{name}: {new_value}'")
    if _split_window(upgraded):
        said.append("a 'training.window' that jumps at its end is now 'model.window' and 'detection.window'")
    return upgraded, tuple(said)


def _split_window(values: dict[str, Any]) -> bool:
    """A schedule of the window that only jumped in the last thousandth was a window for detection in disguise."""
    training = _part(values, ["training"])
    points = None if training is None else training.get("window")
    if training is None or not isinstance(points, list | tuple) or len(points) < 2 or points[-2][0] < _JUMP:
        return False
    values.setdefault("model", {})["window"] = int(points[-2][1])
    values.setdefault("detection", {}).setdefault("window", int(points[-1][1]))
    training["window"] = points[:-1] if len(points) > 2 else None
    return True


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in values.items()}


def _part(values: dict[str, Any], path: list[str]) -> dict[str, Any] | None:
    """The mapping that a path leads to; None where there is none."""
    part: Any = values
    for name in path:
        part = part.get(name) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else None


def _take(values: dict[str, Any], path: list[str]) -> tuple[bool, Any]:
    part = _part(values, path[:-1])
    if part is None or path[-1] not in part:
        return False, None
    return True, part.pop(path[-1])


def _put(values: dict[str, Any], path: list[str], value: Any) -> None:
    """A value that is already there under the new name wins: a file may hold both while it is being edited."""
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values.setdefault(path[-1], value)
