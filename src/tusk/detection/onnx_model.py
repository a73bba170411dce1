"""A model in an ONNX file, run by onnxruntime alone: torch is not imported."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from tusk.config.data import DataConfig
from tusk.config.detection import DetectionConfig
from tusk.config.model import ModelConfig, most_peaks
from tusk.config.renames import upgrade
from tusk.data.framing import FittedPicture, Frame, Placement, fit_picture
from tusk.detection.detections import Detections
from tusk.detection.inputs import OneImage, each, is_one, to_picture
from tusk.detection.onnx_format import FORMAT, VERSION
from tusk.detection.suppress import lowered_scores, scores_by_size
from tusk.detection.tiling import cut_tiles, in_original, join
from tusk.errors import DataError, UsageError, UserError, shortened

Float32Array = npt.NDArray[np.float32]
_BATCH = 8


@dataclass(frozen=True)
class UseConfig:
    """What use needs of a model's configuration. The whole one has the losses, and those need torch."""

    data: DataConfig
    model: ModelConfig
    detection: DetectionConfig


@dataclass(frozen=True)
class OnnxPoints:
    """What the graph gives for B images, in their pixels; empty slots have a score of 0."""

    xy: Float32Array  # (B, K, 2), best score first
    score: Float32Array  # (B, K)
    type: npt.NDArray[np.int64]  # (B, K)
    probability: Float32Array  # (B, K)
    descriptor: Float32Array  # (B, K, C)
    size: Float32Array | None = None  # (B, K), where sizes are learnt


class OnnxModel:
    """Detects as `Model` does, but for what needs the decoder: gains are NaN, there are no masks, and nothing is left
    out for what it does not explain. Of models with sizes it gives every candidate of the least score."""

    def __init__(self, path: str | os.PathLike[str], threads: int | None = None) -> None:
        """threads: by default OMP_NUM_THREADS, or every core that the process may run on."""
        self.path = Path(path)
        self._session = _open(self.path, threads)
        stored: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        self.config, self.names, self._keypoints = _metadata(self.path, stored)
        called = any(name != f"type {number}" for number, name in enumerate(self.names))
        self._called = self.names if called else None  # as of a model that nobody has named types of

    def __repr__(self) -> str:
        model, data = self.config.model, self.config.data
        return f"<tusk.OnnxModel '{self.path}': {self._keypoints} keypoints, {model.types} types, {data.size} pixels>"

    def __getattr__(self, name: str) -> Any:
        if name in ("encode", "evaluate", "network", "report", "save", "to", "detect_files"):
            raise UserError(f"{self.path}: {name}", "an ONNX file only detects", "load the model file itself for that")
        raise AttributeError(f"'OnnxModel' object has no attribute '{name}'")

    def run(self, images: Float32Array, keypoints: int | None = None) -> OnnxPoints:
        """The graph itself: images (B, 3, H, W) in [0, 1] -> up to so many points in each."""
        feeds: dict[str, Any] = {"image": np.ascontiguousarray(images, np.float32)}
        if keypoints is not None:
            feeds["keypoints"] = np.array([keypoints], np.int64)
        return OnnxPoints(*self._session.run(None, feeds))

    def detect(
        self, images: OneImage | Iterable[OneImage], keypoints: int | None = None, min_score: float | None = None
    ) -> Any:
        """One picture -> its `Detections`, several -> a list of them; as `Model.detect`."""
        found = list(self.detect_iter(images, keypoints, min_score))
        return found[0] if is_one(images) else found

    def detect_iter(
        self, images: OneImage | Iterable[OneImage], keypoints: int | None = None, min_score: float | None = None
    ) -> Iterator[Detections]:
        """The same one by one."""
        if keypoints is not None and keypoints < 1:
            raise UsageError("keypoints", f"{keypoints} cannot be detected", "give 1 or more")
        least = self.config.detection.min_score if min_score is None else min_score
        data = self.config.data
        side = None if data.fit == "tiles" else 2 * data.size
        waiting: list[FittedPicture] = []
        for number, image in enumerate(each(images)):
            picture, name = to_picture(image, number, side)
            fitted = fit_picture(picture, name, data, self.config.model.multiple)
            if data.fit == "tiles":
                yield self._in_tiles(fitted, keypoints, least)
                continue
            size = (fitted.frame.height, fitted.frame.width)
            if waiting and (len(waiting) == _BATCH or size != (waiting[0].frame.height, waiting[0].frame.width)):
                yield from self._together(waiting, keypoints or self._keypoints, least)
                waiting = []
            waiting.append(fitted)
        yield from self._together(waiting, keypoints or self._keypoints, least)

    def _together(self, pictures: Sequence[FittedPicture], keypoints: int, least: float) -> Iterator[Detections]:
        """Pictures of one size."""
        if not pictures:
            return
        height, width = pictures[0].frame.height, pictures[0].frame.width
        room = self._room(height, width)
        pixels = np.stack([picture.pixels for picture in pictures])  # (B, H, W, 3)
        images = np.moveaxis(pixels, -1, 1).astype(np.float32) / np.float32(255)
        points = self.run(images, min(keypoints, room))
        for place, picture in enumerate(pictures):
            yield self._of_picture(picture, points, place, keypoints, room, least)

    def _of_picture(
        self, picture: FittedPicture, points: OnnxPoints, place: int, keypoints: int, room: int, least: float
    ) -> Detections:
        xy, inside = picture.to_original(points.xy[place].astype(np.float64))
        scale, config = max(picture.frame.placement.scale), self.config
        found, score = points.score[place] > 0, points.score[place].astype(np.float64)  # (K,) each
        if points.size is not None:
            own = points.size[place]
            score = scores_by_size(score, own, config.detection.usual_size)
            score = lowered_scores(points.xy[place], own / 2, score, config.detection.suppression, least)
        kept = inside & found & (score > 0) & (score >= least)  # (K,)
        size = None if points.size is None else points.size[place].astype(np.float64)[kept] * scale
        return Detections(
            source=picture.source,
            width=picture.original_width,
            height=picture.original_height,
            xy=xy[kept],
            type=points.type[place][kept],
            score=score[kept],
            gain=np.full(int(kept.sum()), np.nan),
            probability=points.probability[place].astype(np.float64)[kept],
            descriptor=points.descriptor[place].astype(np.float64)[kept],
            instance=np.flatnonzero(kept),
            size=size,
            box_side=(config.detection.window or config.model.window) * scale,
            limit=keypoints,
            at_limit=bool((found & (points.score[place] >= least)).all()) and keypoints < room,
            resolution=config.model.stride * scale,
            names=self._called,
        )

    def _in_tiles(self, picture: FittedPicture, keypoints: int | None, least: float) -> Detections:
        """A picture of any size in tiles of training's size; of what two of them find, the better score stays."""
        side, frame, config = self.config.data.size, picture.frame, self.config
        tiles = cut_tiles(frame.height, frame.width, (side, side))
        alone = Frame(side, side, Placement(0, 0, side, side, 0, 0, side, side))
        each_tile = 2 * self._keypoints  # a tile in a crowd holds more than its share
        most = keypoints or -(-self._keypoints * frame.height * frame.width // side**2)
        found: list[Detections] = []
        for start in range(0, len(tiles), _BATCH):
            parts = [tile.of(picture.pixels, (side, side)) for tile in tiles[start : start + _BATCH]]
            fitted = [FittedPicture(picture.source, side, side, alone, pixels) for pixels in parts]
            found += [replace(one, gain=one.score) for one in self._together(fitted, each_tile, least)]
        window = config.detection.window or config.model.window
        apart = window / 2 if config.model.sizes is None else config.model.sizes[0]
        joined = in_original(join(found, tiles, frame.height, frame.width, apart, most), picture)
        scale = max(frame.placement.scale)
        gain = np.full(len(joined), np.nan)
        return replace(joined, gain=gain, box_side=window * scale, resolution=config.model.stride * scale)

    def _room(self, height: int, width: int) -> int:
        model = self.config.model
        window = model.window_on_map(self.config.detection.window or model.window)
        return most_peaks(-(-height // model.stride), -(-width // model.stride), window)


def _open(path: Path, threads: int | None) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        fix = "run 'pip install onnxruntime', or load the model file itself"
        raise UserError(str(path), "onnxruntime is not installed", fix) from error
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), f"it cannot be read ({error.strerror})", "check the path") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only: a default for the number of points is meant
    options.intra_op_num_threads = threads or _threads()
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common class of their own
        why = f"it is not a readable ONNX file ({shortened(str(error), 200)})"
        raise DataError(str(path), why, "use a file that 'tusk export' wrote") from error


def _threads() -> int:
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _metadata(path: Path, stored: dict[str, str]) -> tuple[UseConfig, tuple[str, ...], int]:
    """Configuration, names of the types and number of keypoints."""
    fix = "use a file that 'tusk export' wrote"
    if stored.get("format") != FORMAT:
        raise DataError(str(path), "it is an ONNX file, but not of a tusk model", fix)
    if stored.get("version") != str(VERSION):
        raise DataError(str(path), f"its format '{shortened(stored.get('version', ''))}' is not known", "upgrade tusk")
    try:
        values, _ = upgrade(json.loads(stored["config"]))
        config = UseConfig(
            DataConfig.model_validate(values["data"]),
            ModelConfig.model_validate(values["model"]),
            DetectionConfig.model_validate(values["detection"]),
        )
        names, keypoints = json.loads(stored["names"]), int(stored["keypoints"])
        if keypoints < 1 or len(names) < config.model.types:  # types that people made come after the model's own
            raise ValueError("names")
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise DataError(str(path), f"its metadata is not understood ({type(error).__name__})", fix) from error
    return config, tuple(map(str, names)), keypoints
