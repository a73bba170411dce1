"""`tusk export RESULTS --to FORMAT`: what was detected, for other tools; a model as ONNX or as a page for the web."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
import yaml

from tusk.cli.flags import run_with_flags
from tusk.errors import DataError, UsageError, nearest, visible

_FORMATS = "coco, coco-keypoints, yolo, voc, cvat, label-studio, csv, napari, trackmate, geojson, fiftyone"


def export(
    what: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="WHAT", help="A folder that 'tusk detect' wrote."),
    ],
    to: Annotated[str, tyro.conf.arg(help=f"The format: {_FORMATS}.")],
    out: Annotated[Path | None, tyro.conf.arg(help="Where to write; default: a new folder below runs/export.")] = None,
    names: Annotated[
        Path | None,
        tyro.conf.arg(help='What types are called: a YAML or JSON file such as {"0": "cell"}.'),
    ] = None,
) -> None:
    """Write what was detected in the format of another tool."""
    from tusk.export.convert import export_results
    from tusk.export.formats import FORMATS

    if to not in FORMATS:
        raise UsageError(f"--to {to}", "there is no such format", nearest(to, FORMATS))
    called = None if names is None else read_names(names)
    done = export_results(Path(what), to, out, called, started=lambda folder: _tell(f"Results go to {folder}"))
    _tell(f"{done.points:,} points of {done.pictures:,} pictures as {FORMATS[to].words}.")
    _tell(f"Open {done.file}")
    _tell(f"Results are in {done.folder}")
    print(done.folder)


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
