"""A trained model: detect, evaluate, encode, report, save."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args, overload

import torch

from tusk import __version__
from tusk.api.data import each_picture, find_pictures
from tusk.config import Config, DetectionConfig
from tusk.config.data import Frames
from tusk.data.sources import Source, Sources
from tusk.detection.detections import Detections
from tusk.detection.encoding import Encoding, encode_picture
from tusk.detection.inputs import OneImage, is_one
from tusk.detection.predictor import BATCH, Predictor
from tusk.device import choose_device, use_device
from tusk.errors import UsageError, nearest
from tusk.evaluation.evaluate import evaluate, prepare
from tusk.evaluation.request import EvaluationRequest
from tusk.evaluation.results import Figures
from tusk.export.files import FileOptions, FileResults, detect_files
from tusk.folders import new_folder
from tusk.model.network import Network
from tusk.model.storage import StoredModel, load_model, save_model
from tusk.naming import Naming, named_types, names_path, open_names
from tusk.naming.apply import named
from tusk.presets import make_config, merge
from tusk.progress import progress_bar, stderr_console
from tusk.report.subject import subject_of
from tusk.report.write import write_report
from tusk.training.preview import size_remark
from tusk.weights import model_path, shipped_models

if TYPE_CHECKING:
    from PIL import Image


def list_models() -> list[str]:
    """The names of the models that come with tusk."""
    return sorted(shipped_models())


def load(name: str | os.PathLike[str], device: str = "auto") -> Model:
    """A model that comes with tusk, by its name, or one in a file or run folder that tusk saved.

    device: 'cpu', 'cuda', 'cuda:1', 'mps', or 'auto' for a GPU where there is one.
    """
    path = model_path(os.fspath(name))
    model = Model(load_model(path), path, os.fspath(name)).to(device)
    model._read_names()
    return model


class Model:
    """A trained network with the configuration that made it."""

    def __init__(self, stored: StoredModel, path: Path | None = None, name: str = "model") -> None:
        self._stored, self._name = stored, name
        self._naming: Naming | None = None
        self.path = path
        """The file that it was read from; None where there is none."""

    @property
    def config(self) -> Config:
        """Every setting of the training and of detection."""
        return self._stored.config

    @property
    def provenance(self) -> dict[str, Any]:
        """How it was made: command, seed, steps, minutes."""
        return self._stored.provenance

    @property
    def network(self) -> Network:
        """The network itself, a `torch.nn.Module`."""
        return self._stored.network

    @property
    def names(self) -> dict[int, str]:
        """What the types are called, by number, in the order of their numbers; "type 3" where one has no name.

        Names, merges, hidden types and corrections of `tusk names` and `tusk serve` hold for everything that a loaded
        model detects.
        """
        if self._naming is None:
            return {number: f"type {number}" for number in range(self.config.model.types)}
        state = named_types(self._naming)
        return {number: state[number].title for number in state.visible}

    @property
    def device(self) -> torch.device:
        return self.network.device

    def __repr__(self) -> str:
        model, data = self.config.model, self.config.data
        source = data.source_words or data.dataset
        return (
            f"<tusk.Model '{self._name}': {model.keypoints} keypoints, {model.types} types, trained on {source} at "
            f"{data.size}x{data.size} pixels, on {self.device}>"
        )

    @overload
    def detect(
        self,
        images: str | os.PathLike[str] | Image.Image,
        keypoints: int | None = ...,
        min_score: float | None = ...,
        min_gain: float | None = ...,
        **detection: Any,
    ) -> Detections: ...
    @overload
    def detect(
        self,
        images: list[Any] | tuple[Any, ...],
        keypoints: int | None = ...,
        min_score: float | None = ...,
        min_gain: float | None = ...,
        **detection: Any,
    ) -> list[Detections]: ...
    @overload
    def detect(
        self,
        images: OneImage | Iterable[OneImage],
        keypoints: int | None = ...,
        min_score: float | None = ...,
        min_gain: float | None = ...,
        **detection: Any,
    ) -> Any: ...
    def detect(
        self,
        images: OneImage | Iterable[OneImage],
        keypoints: int | None = None,
        min_score: float | None = None,
        min_gain: float | None = None,
        **detection: Any,
    ) -> Detections | list[Detections]:
        """Detect in a picture, or in each of many: paths, arrays, PIL images or tensors, of any sizes.

        One picture gives `Detections`, several a list of them, in the pictures' own pixels.
        keypoints: at most so many in each picture, by default as many as in training; min_score, min_gain: detections
        below these are left out, by default below the gain that training found; detection: any detection setting,
        such as `window=9`, over the model's own.
        """
        found = list(self.detect_iter(images, keypoints, min_score, min_gain, **detection))
        return found[0] if is_one(images) else found

    def detect_iter(
        self,
        images: OneImage | Iterable[OneImage],
        keypoints: int | None = None,
        min_score: float | None = None,
        min_gain: float | None = None,
        **detection: Any,
    ) -> Iterator[Detections]:
        """The same one by one, for any number of pictures: only those of a few batches are held in memory."""
        found = self._predictor(keypoints, min_score, min_gain, detection).stream(images)
        return found if self._naming is None else named(found, self._naming)

    def detect_files(
        self,
        source: Sources | Source,
        out: str | os.PathLike[str] | None = None,
        keypoints: int | None = None,
        min_score: float | None = None,
        min_gain: float | None = None,
        *,
        batch: int = BATCH,
        masks: bool = False,
        overlays: bool = False,
        frames: Frames | None = None,
        share: tuple[int, int] = (0, 1),
        resume: bool = False,
        started: Callable[[Path], None] = lambda _: None,
        progress: bool = True,
        **detection: Any,
    ) -> FileResults:
        """What `tusk detect` does: all pictures of a source into a folder with CSV and COCO files.

        It may be stopped and called again with the same arguments, and several processes may share it.
        source: a folder, file, glob or list of pictures, or a Python list of such; out: by default a new folder under
        runs/detect; masks, overlays: also write these as PNG files; frames: 'first' or 'all' of a TIFF or GIF that
        holds several (`stack.tif#3` is the third), by default as in training; share: which
        part of how many is this process's; resume: go on with the latest run; started: called with the folder.
        """
        if not isinstance(source, Source):
            source = find_pictures(source, without=None if out is None else Path(out))
        if frames not in (None, *get_args(Frames)):
            raise UsageError("frames", f"{frames!r} is not a choice", nearest(str(frames), get_args(Frames)))
        pictures = each_picture(source, frames or self.config.data.frames)

        def begun(folder: Path) -> None:
            started(folder)
            for remark in pictures.remarks() if progress else ():
                stderr_console().print(f"{remark[0].upper()}{remark[1:]}.")

        options = FileOptions(batch, masks, overlays, share, None if out is None else Path(out), resume)
        predictor = self._predictor(keypoints, min_score, min_gain, detection, batch)
        settings = {
            "keypoints": keypoints,
            "min_score": predictor.settings.min_score,
            "detection": dict(sorted(detection.items())),
        }
        remark = None
        if self.config.model.sizes is not None and self.config.data.fit == "tiles" and share[0] == 0:
            remark = size_remark(pictures.files, self.config.data)
        with progress_bar("detecting", shown=progress) as bar:
            results = detect_files(
                self._stored,
                predictor,
                pictures,
                options,
                settings,
                __version__,
                self._naming,
                started=begun,
                progress=bar,
            )
        return results if remark is None else replace(results, before=(remark,))

    def evaluate(
        self,
        data: str,
        source: str | os.PathLike[str] | None = None,
        count: int | None = None,
        seed: int = 0,
        *,
        training: str | os.PathLike[str] | None = None,
        split: str | None = None,
        keypoints: int | None = None,
        min_score: float | None = None,
        min_gain: float | None = None,
        batch: int = 50,
        progress: bool = True,
        started: Callable[[], None] = lambda: None,
        **detection: Any,
    ) -> Figures:
        """Measure it on a dataset with known truth, as the paper does: labels are used here, and only here.

        data: the dataset's name; source: where the originals are, or a packed file; count: how many images, by default
        2000; seed: of the images that are made or chosen; training: with a packed file, the training images for what
        is fitted on them; split: by default 'test'; keypoints, min_score, min_gain, detection: as for `detect`;
        started: called once everything is open and nothing can be refused any more.
        """
        request = EvaluationRequest(
            data=data,
            source=_text(source),
            training=_text(training),
            split=split,
            count=count,
            keypoints=keypoints,
            seed=seed,
            batch=batch,
            min_score=min_score,
            min_gain=min_gain,
            detection=self._detection(detection),
        )
        with progress_bar(shown=progress) as bar:
            job = prepare(self._stored, request, lambda words, done, total: bar(done, total, words), self._naming)
            started()
            return Figures(self._name, __version__, evaluate(job))

    def encode(self, image: OneImage) -> Encoding:
        """Feature map, score map, keypoints and descriptors of one picture, before anything is filtered."""
        return encode_picture(self.network, self.config, image)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        data: str | None = None,
        count: int = 200,
        *,
        trust_source: bool = False,
    ) -> Path:
        """Write one self-contained HTML page about the model; -> its path.

        path: by default report.html in the run's folder, or in a new one under runs/report; data: images to show it
        on, a folder or a dataset's name, by default those that it is for; count: how many, at most; trust_source: open
        the folder that a model file names, where the file does not lie in its run's folder.
        """
        run = None if self.path is None or not (self.path.parent / "config.yaml").is_file() else self.path.parent
        page = (run or new_folder(Path("runs/report") / Path(self._name).stem)) / "report.html"
        subject = replace(subject_of(self._stored, run), naming=self._naming)
        return write_report(subject, Path(path or page), data, count, trust_source=trust_source).path

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it into one safetensors file, which `tusk.load` reads; -> its path."""
        target = Path(path)
        if target.suffix != ".safetensors":
            fix = f"write to {target.with_suffix('.safetensors')}"
            raise UsageError(str(target), "a model file ends in .safetensors", fix)
        save_model(target, self._stored)
        return target

    def to(self, device: str | torch.device) -> Self:
        """Move the network to a device; -> itself."""
        chosen = device if isinstance(device, torch.device) else choose_device(device)
        use_device(chosen)
        self.network.to(chosen)
        return self

    def _read_names(self) -> None:
        """Those that lie beside the model's file, where there are any."""
        if self.path is not None and (path := names_path(self.path)).exists():
            naming = open_names(path, self._stored)
            self._naming = naming if naming.edits else None

    def _predictor(
        self,
        keypoints: int | None,
        min_score: float | None,
        min_gain: float | None,
        detection: dict[str, Any],
        batch: int = BATCH,
    ) -> Predictor:
        return Predictor(self._stored, keypoints, min_score, min_gain, batch, self._detection(detection))

    def _detection(self, settings: dict[str, Any]) -> DetectionConfig | None:
        """The model's settings with these over them; faults are reported as those of a configuration."""
        if not settings:
            return None
        values = merge(self.config.model_dump(mode="json"), {"detection": settings})
        return make_config(values, "detect").detection


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
