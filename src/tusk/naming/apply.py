"""Names, merges, hidden types, what clicks taught, and corrections -> onto detections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from tusk.detection.detections import Detections
from tusk.detection.pipeline import BatchDetections
from tusk.naming.assign import assign
from tusk.naming.edits import Added, Correct, Merge, Naming, Place, Teach
from tusk.naming.identity import checksum_of
from tusk.naming.types import named_types

FloatArray = npt.NDArray[np.float64]


def apply_naming(
    found: Detections, naming: Naming, path: Path | None = None, frame: int | None = None, sha256: str | None = None
) -> Detections:
    """The detections of one picture as people named and corrected them; whatever was hidden or removed is left out.

    Corrections hold for one picture: that of this file (or of this checksum, where it is known), and this frame of it.
    Points that were added have score and probability 1, gain 0, and numbers after all others.
    """
    if sha256 is None and path is not None and naming.has_corrections:
        sha256 = checksum_of(path)
    state, pinned = named_types(naming), _pinned(found, naming, sha256, frame)
    types = assign(naming, found.type, found.descriptor, pinned)
    kept = np.isin(types, state.visible) & ~_removed(found, naming, sha256, frame)
    named = replace(replace(found, type=types)[kept], names=state.titles)
    if found.mask_map is not None and not kept.all():
        gone = np.isin(found.mask_map, 1 + found.instance[~kept])
        named = replace(named, mask_map=np.where(gone, np.uint16(0), found.mask_map))
    added = [one for one in _added(naming, sha256, frame) if one.type in state.visible]
    return _with_added(named, added, 1 + int(found.instance.max(initial=-1))) if added else named


def apply_to_batch(found: BatchDetections, naming: Naming, *, compact: bool = False) -> BatchDetections:
    """The same for slots of images that are no files. compact: types are numbered by their place among those that can
    be seen, as whoever scores them wants it.
    """
    state = named_types(naming)
    shape = found.type.shape
    descriptors = found.descriptors.flatten(0, 1).double().cpu().numpy()  # (B*K, C)
    types = assign(naming, found.type.flatten().cpu().numpy(), descriptors)
    seen = np.isin(types, state.visible).reshape(shape)
    if compact:
        places = np.zeros(state.count, np.int64)
        places[list(state.visible)] = np.arange(len(state.visible))
        types = places[types]
    device = found.type.device
    kept = found.kept & torch.from_numpy(seen).to(device)
    shares = found.shares
    if shares is not None:  # the pixels of what is hidden are the background's
        hidden = (found.kept & ~kept)[:, :, None, None]  # (B, K, 1, 1)
        lost = (shares[:, 1:] * hidden).sum(1, keepdim=True)
        shares = torch.cat([shares[:, :1] + lost, shares[:, 1:] * ~hidden], 1)
    return replace(found, type=torch.from_numpy(types.reshape(shape)).to(device), kept=kept, shares=shares)


def _places(found: Detections, places: list[Place]) -> list[int]:
    """The detection at each of these places; none where there is nothing near."""
    reach = 1 + 1.5 * found.resolution
    rows = []
    for place in places:
        if not len(found):
            break
        away = np.hypot(found.xy[:, 0] - place.x, found.xy[:, 1] - place.y)
        if away.min() <= reach:
            rows.append(int(away.argmin()))
    return rows


def _pinned(found: Detections, naming: Naming, sha256: str | None, frame: int | None) -> dict[int, list[int]]:
    """What was clicked stays what it was said to be, wherever the means lie."""
    if sha256 is None:
        return {}
    pinned: dict[int, list[int]] = {}
    for number, edit in enumerate(naming.edits):
        if isinstance(edit, Teach):
            own: list[Place] = [
                one
                for one in edit.examples
                if one.picture is not None and (one.picture.sha256, one.picture.frame) == (sha256, frame)
            ]
            pinned[number] = _places(found, own)
    return pinned


def _corrections(naming: Naming, sha256: str | None, frame: int | None) -> list[Correct]:
    return [
        edit
        for edit in naming.edits
        if isinstance(edit, Correct) and (edit.picture.sha256, edit.picture.frame) == (sha256, frame)
    ]


def _removed(found: Detections, naming: Naming, sha256: str | None, frame: int | None) -> npt.NDArray[np.bool_]:
    removed = np.zeros(len(found), np.bool_)
    for edit in _corrections(naming, sha256, frame):
        removed[_places(found, [one for one in edit.removed if not one.added])] = True
    return removed


def _added(naming: Naming, sha256: str | None, frame: int | None) -> list[Added]:
    """Those that are still there, with the types that they have after all merges."""
    points: list[Added] = []
    for edit in naming.edits:
        if isinstance(edit, Merge):
            points = [one.model_copy(update={"type": edit.into}) if one.type == edit.other else one for one in points]
        elif isinstance(edit, Correct) and (edit.picture.sha256, edit.picture.frame) == (sha256, frame):
            points = [
                one
                for one in points
                if not any(np.hypot(one.x - gone.x, one.y - gone.y) < 0.01 for gone in edit.removed if gone.added)
            ]
            points += edit.added
    return points


def _with_added(found: Detections, added: list[Added], first: int) -> Detections:
    number = len(added)
    ones, nothing = np.ones(number), np.zeros(number)
    size = None if found.size is None else np.concatenate([found.size, np.full(number, found.box_side)])
    return replace(
        found,
        xy=np.concatenate([found.xy.reshape(-1, 2), np.array([[one.x, one.y] for one in added])]),
        type=np.concatenate([found.type, np.array([one.type for one in added], np.int64)]),
        score=np.concatenate([found.score, ones]),
        gain=np.concatenate([found.gain, nothing]),
        probability=np.concatenate([found.probability, ones]),
        descriptor=np.concatenate([found.descriptor, np.zeros((number, found.descriptor.shape[1]))]),
        instance=np.concatenate([found.instance, first + np.arange(number)]),
        size=size,
    )


def named(found: Iterable[Detections], naming: Naming) -> Iterator[Detections]:
    """The same for a stream; those of pictures that came as files are corrected, too."""
    for one in found:
        yield apply_naming(one, naming, _file_of(one.source))


def _file_of(source: str) -> Path | None:
    """The file of that name; None for an array, which has no name of a file."""
    try:
        return Path(source) if source and Path(source).is_file() else None
    except (OSError, ValueError):  # too long for a name, or with letters that none has
        return None
