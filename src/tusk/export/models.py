"""From a model's name, file or run to an ONNX file or a page for the web."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tusk.errors import UsageError, UserError
from tusk.folders import new_folder, results_folder
from tusk.model.storage import StoredModel, load_model
from tusk.naming import Naming, names_path, open_names
from tusk.weights import model_path

Started = Callable[[Path], None]


def export_onnx(
    model: str, out: Path | None, names: Mapping[int, str] | None, keypoints: int | None, started: Started
) -> Path:
    """-> the file: `out`, or a new one below runs/export."""
    if out is not None and out.suffix != ".onnx":
        raise UsageError(str(out), "an ONNX file ends in .onnx", f"write to {out.with_suffix('.onnx')}")
    if out is not None and out.exists():
        raise UsageError(str(out), "the file is there already", "name another one, or delete it")
    check_onnx()
    from tusk.export.onnx.model import write_onnx

    stored, naming = _load(model)
    path = out or new_folder(Path("runs/export") / f"{name_of(model)}-onnx") / "model.onnx"
    started(path)
    write_onnx(stored, path, names, keypoints, naming)
    return path


def export_web(
    model: str,
    out: Path | None,
    names: Mapping[int, str] | None,
    keypoints: int | None,
    runtime: Path | None,
    started: Started,
) -> Path:
    """-> the folder with the page: `out`, or a new one below runs/export."""
    check_onnx()
    from tusk.export.web.write import write_page

    stored, naming = _load(model)
    with results_folder(out, Path("runs/export") / f"{name_of(model)}-web") as place:
        folder = place.make()
        started(folder)
        write_page(stored, name_of(model), folder, names, keypoints, runtime, naming)
    return folder


def check_onnx() -> None:
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise UserError("tusk export", "the package onnx is not installed", "run 'pip install onnx'") from error


def name_of(model: str) -> str:
    path = Path(model)
    return path.resolve().name if path.is_dir() else path.stem


def _load(model: str) -> tuple[StoredModel, Naming | None]:
    """The model, and what was said of its types where it lies."""
    if model.endswith(".onnx"):
        raise UsageError(model, "it is an ONNX file already", "name the model that it was made from")
    path = model_path(model)
    stored = load_model(path)
    naming = open_names(names_path(path), stored)
    return stored, naming if naming.edits else None
