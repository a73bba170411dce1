"""Lines about the points themselves: whether they lie on things, once on each, stay there, and matter."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config import Config
from tusk.report.evidence import Evidence
from tusk.report.predictions import Predictions
from tusk.report.remark import Level, Remark

# (warn from, bad from): docs/verdict.md has the runs that these lie between.
_ON_NOTHING = (0.12, 0.25)
_DOUBLED = (0.15, 0.3)
_IDLE = (0.08, 0.2)
_REPEATED = (0.85, 0.75)  # below these
_MISSED = 0.15  # of the things have no point: mentioned from here
_AT_LIMIT = 0.5  # of the pictures use every keypoint: then nobody is told to ask for fewer


def point_remarks(predictions: Predictions, config: Config, evidence: Evidence) -> list[Remark]:
    """Most telling first."""
    lines = [
        _on_things(predictions, config, evidence),
        _doubled(config, evidence),
        _repeated(config, evidence),
        _idle(predictions, config, evidence),
        _missed(config, evidence),
    ]
    return [line for line in lines if line is not None]


def empty_keypoints(predictions: Predictions, window: int) -> Tensor:
    """(N, K) bool: on the background, or, if the network has none, in a uniform region: where the image hardly varies
    around a keypoint, compared with the image as a whole. (A large thing of one colour is uniform inside.)"""
    if predictions.bare is not None:
        return predictions.bare
    grey = predictions.sample.images.float().mean(1, keepdim=True) / 255  # (N, 1, H, W)
    reach = window // 2
    padded = F.pad(grey, (reach, reach, reach, reach), mode="replicate")
    mean = F.avg_pool2d(padded, 2 * reach + 1, stride=1)
    variance = F.avg_pool2d(padded.square(), 2 * reach + 1, stride=1) - mean.square()
    deviation = variance.clamp_min(0).sqrt()[:, 0]  # (N, H, W)
    height, width = deviation.shape[-2:]
    columns = predictions.xy[..., 0].round().long().clamp(0, width - 1)  # (N, K)
    rows = predictions.xy[..., 1].round().long().clamp(0, height - 1)
    around = deviation.flatten(1).gather(1, rows * width + columns)
    whole = grey.flatten(1).std(1, correction=0)[:, None]
    return (around < torch.maximum(0.1 * whole, torch.full_like(whole, 0.01))) & predictions.found


def points_on_nothing(predictions: Predictions, config: Config, evidence: Evidence) -> Tensor:
    """(N, K) bool: by the pictures' own foreground where that is clear. Else those in an empty place that also matter
    little: a point with a large gain stands for something, however plain it is."""
    if evidence.things is not None:
        return torch.from_numpy(evidence.things.beside)
    return empty_keypoints(predictions, config.model.window) & evidence.idle


def _on_things(predictions: Predictions, config: Config, evidence: Evidence) -> Remark | None:
    found = predictions.found
    if not bool(found.any()):
        return Remark("bad", "No point was found in any image", "train it for longer")
    nothing = points_on_nothing(predictions, config, evidence)
    share = float(nothing.sum() / found.sum())
    level = _level(share, _ON_NOTHING)
    if level == "ok":
        return Remark("ok", f"{1 - share:.0%} of the points lie on things")
    if level == "bad" and not _doubtful(predictions, evidence):
        level = "warn"  # the foreground is an estimate: for a no, another sign must agree
    fact = f"{share:.0%} of the points lie on no thing"
    background = _background_types(predictions, nothing & evidence.idle, config.model.types)
    if background:
        which = f"type {background[0]}" if len(background) == 1 else f"types {listed(background)}"
        fact += f", mostly of {which}, which is background"
        return Remark(level, fact, f"leave that out when you use it, or {_surplus(predictions, config, evidence)}")
    return Remark(level, fact, _surplus(predictions, config, evidence))


def _doubtful(predictions: Predictions, evidence: Evidence) -> bool:
    """Whether repeatability or gains speak against the points as well."""
    moved = evidence.repeated is not None and evidence.repeated.rate < _REPEATED[0]
    return moved or evidence.idle_share(predictions.found) >= _IDLE[0]


def _background_types(predictions: Predictions, empty: Tensor, types: int) -> list[int]:
    """Types most of whose points are on nothing and matter little, if they have most of such points."""
    counts = predictions.counts(types)
    on_nothing = torch.bincount(predictions.label[empty], minlength=types)
    ground = [number for number in range(types) if 2 * int(on_nothing[number]) > int(counts[number])]
    return ground if 2 * int(on_nothing[ground].sum()) > int(empty.sum()) > 0 else []


def _surplus(predictions: Predictions, config: Config, evidence: Evidence) -> str:
    """Advice against points that nobody needs. It never speaks against the limit or against things without a point."""
    keypoints = config.model.keypoints
    used = (predictions.found & ~points_on_nothing(predictions, config, evidence)).sum(1)
    needed = max(1, int(used.float().quantile(0.95).ceil()))
    missed = evidence.things is not None and evidence.things.missed > _MISSED
    if needed < keypoints and evidence.at_limit < _AT_LIMIT and not missed:
        return f"ask for fewer (--keypoints {needed}), or train it for longer"
    return f"train it for longer, and {size_advice(config)}"


def size_advice(config: Config) -> str:
    """Which setting says how large things are."""
    if config.model.sizes is not None:
        return "give the size of a usual thing in the pictures' pixels (--thing-size)"
    return "set --model.window to about the size of a thing in pixels"


def _doubled(config: Config, evidence: Evidence) -> Remark | None:
    if evidence.things is None:
        return None
    share = evidence.things.doubled
    level = _level(share, _DOUBLED)
    if level == "ok":
        return Remark("ok", f"Things have one point each ({share:.0%} of the points share one)")
    larger = 2 * round(0.75 * config.model.window) + 1
    advice = f"set --model.window nearer to the size of a thing in pixels (it is {config.model.window}; try {larger})"
    if config.model.sizes is not None:
        advice = size_advice(config)
    return Remark(level, f"{share:.0%} of the points lie on a thing that has a point already", advice)


def _repeated(config: Config, evidence: Evidence) -> Remark | None:
    if evidence.repeated is None:
        return None
    rate, error = evidence.repeated.rate, evidence.repeated.error
    if rate >= _REPEATED[0]:
        off = f"{error * config.data.size:.1f} pixels off"
        return Remark("ok", f"{rate:.0%} of the points are found again when the image is warped, {off} in the median")
    level: Level = "warn" if rate >= _REPEATED[1] else "bad"
    fact = f"{1 - rate:.0%} of the points are not found again when the image is warped"
    return Remark(level, fact, "train it for longer, or with several seeds and keep the best (--seeds 3)")


def _idle(predictions: Predictions, config: Config, evidence: Evidence) -> Remark:
    share = evidence.idle_share(predictions.found)
    level = _level(share, _IDLE)
    if level == "ok":
        return Remark("ok", f"{1 - share:.0%} of the points matter: without them the reconstruction is worse")
    fact = f"{share:.0%} of the points can be left out and the reconstruction hardly changes"
    return Remark(level, fact, _surplus(predictions, config, evidence))


def _missed(config: Config, evidence: Evidence) -> Remark | None:
    """Things without a point, and whether the limit is to blame."""
    if evidence.things is None:
        return None
    share, keypoints = evidence.things.missed, config.model.keypoints
    if share <= _MISSED:
        return Remark("ok", f"{1 - share:.0%} of the things have a point")
    fact = f"{share:.0%} of the things have no point"
    if evidence.at_limit >= _AT_LIMIT:
        full = f"{evidence.at_limit:.0%} of the images use all {keypoints} keypoints"
        return Remark(
            "warn", f"{fact}, and {full}", f"ask for more (--keypoints {max(keypoints + 1, 3 * keypoints // 2)})"
        )
    return Remark("warn", fact, "train it for longer")


def _level(share: float, limits: tuple[float, float]) -> Level:
    return "ok" if share < limits[0] else "warn" if share < limits[1] else "bad"


def listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" and others" if len(numbers) > 10 else "")
