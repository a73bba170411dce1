"""`tusk export RESULTS --to FORMAT`: what was detected, for other tools; a model as ONNX or as a page for the web."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
import yaml

from tusk.cli.flags import run_with_flags
from tusk.errors import DataError, UsageError, nearest, visible

_FORMATS = "coco, coco-keypoints, yolo, voc, cvat, label-studio, csv, napari, trackmate, geojson, fiftyone"
_OF_MODELS = ("onnx", "web")


def export(
    what: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="WHAT", help="A folder that 'tusk detect' wrote; for onnx and web a model."),
    ],
    folder: Annotated[
        tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="OUT", help="The same as --out.")
    ] = None,
    *,
    to: Annotated[str, tyro.conf.arg(help=f"Of results: {_FORMATS}. Of a model: onnx, web.")],
    out: Annotated[
        Path | None, tyro.conf.arg(help="Folder, or for onnx a file, to write; default: a new one below runs/export.")
    ] = None,
    names: Annotated[
        Path | None, tyro.conf.arg(help='What types are called: a YAML or JSON file such as {"0": "cell"}.')
    ] = None,
    keypoints: Annotated[
        int | None, tyro.conf.arg(help="Of a model: at most how many in a picture; default: as in training.")
    ] = None,
    runtime: Annotated[
        Path | None,
        tyro.conf.arg(help="For web: the package onnxruntime-web, a .tgz or a folder; default: npm fetches it."),
    ] = None,
) -> None:
    """Write what was detected in the format of another tool, or a model as ONNX or as a page for the web."""
    if out is not None and folder is not None:
        raise UsageError("--out", f"the output was named already: '{folder}'", "leave one of them out")
    out, called = out or folder, None if names is None else read_names(names)
    if to in _OF_MODELS:
        _export_model(what, to, out, called, keypoints, runtime)
        return
    for flag, value in (("--keypoints", keypoints), ("--runtime", runtime)):
        if value is not None:
            raise UsageError(flag, "it is for models only", "leave it out")
    from tusk.export.convert import export_results
    from tusk.export.formats import FORMATS

    if to not in FORMATS:
        raise UsageError(f"--to {to}", "there is no such format", nearest(to, [*FORMATS, *_OF_MODELS]))
    done = export_results(Path(what), to, out, called, started=_begun)
    _tell(f"{done.points:,} points of {done.pictures:,} pictures as {FORMATS[to].words}.")
    _tell(f"Next: open {done.file}")
    _tell(f"Results are in {done.folder}")
    print(done.folder)


def _export_model(
    model: str, to: str, out: Path | None, names: dict[int, str] | None, keypoints: int | None, runtime: Path | None
) -> None:
    from tusk.export.models import export_onnx, export_web

    if to == "web":
        path = export_web(model, out, names, keypoints, runtime, _begun)
        _tell(f"Next: {shlex.join(['python', '-m', 'http.server', '--bind', '127.0.0.1', '--directory', str(path)])}")
    else:
        if runtime is not None:
            raise UsageError("--runtime", "it is for --to web only", "leave it out")
        path = export_onnx(model, out, names, keypoints, _begun)
        _tell(f'Next: in Python, tusk.load("{path}").detect("photo.png")')
    _tell(f"Results are in {path}")
    print(path)


def _begun(path: Path) -> None:
    _tell(f"Results go to {path}")


def _tell(words: str) -> None:
    print(visible(words), file=sys.stderr)


def read_names(path: Path) -> dict[int, str]:
    """Numbers of types -> names."""
    fix = 'write numbers and names, such as {"0": "cell"}'
    try:
        values: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(str(path), f"it cannot be read ({error.strerror})", "check the path") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(str(path), "it is not YAML or JSON", fix) from error
    if not isinstance(values, Mapping):
        raise DataError(str(path), "it does not say which type has which name", fix)
    names = {}
    for number, name in values.items():
        if not str(number).isdecimal() or not isinstance(name, str | int | float):
            raise DataError(str(path), f"'{number}: {name}' is not a type's number and its name", fix)
        names[int(number)] = str(name)
    return names


def run(args: Sequence[str]) -> None:
    run_with_flags(export, args, "tusk export")
