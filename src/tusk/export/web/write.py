"""The page: its own text and script, the model as ONNX, and onnxruntime-web beside them."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tusk.detection.palette import ink_on, type_colours
from tusk.detection.settings import settings_of
from tusk.errors import UsageError
from tusk.export.onnx.model import onnx_model, titles
from tusk.export.web.runtime import read_runtime
from tusk.io import atomic_write
from tusk.model.storage import StoredModel
from tusk.naming import Naming, named_types

_HERE = Path(__file__).parent


def write_page(
    model: StoredModel,
    name: str,
    folder: Path,
    names: Mapping[int, str] | None = None,
    keypoints: int | None = None,
    runtime: Path | None = None,
    naming: Naming | None = None,
) -> None:
    """All files of the page into an empty folder; naming: what people said of the types."""
    config = model.config
    if config.data.fit == "tiles" or config.data.contrast != "own":
        why = (
            f"the page cannot prepare pictures as data.fit '{config.data.fit}', data.contrast '{config.data.contrast}'"
        )
        raise UsageError("--to web", why, "use --to onnx and tusk.load, which can")
    called = titles(model, naming, names)
    colours = type_colours(len(called)) if naming is None else named_types(naming).colours
    content = onnx_model(model, called, keypoints, naming).SerializeToString()
    files = read_runtime(runtime)
    settings: dict[str, Any] = {
        "names": called,
        "colours": [[f"rgb{colour}", f"rgb{ink_on(colour)}"] for colour in colours],
        "size": config.data.size,
        "fit": config.data.fit,
        "grey": config.data.grey,
        "least": config.model.multiple,
        "minScore": settings_of(model).min_score,
    }
    page = (_HERE / "page.html").read_text(encoding="utf-8").replace("{{name}}", html.escape(name))
    # Settings are data to the page, not script: nothing in a name can end the element.
    page = page.replace("{{settings}}", json.dumps(settings).replace("<", "\\u003c"))
    files |= {"index.html": page.encode(), "page.js": (_HERE / "page.js").read_bytes(), "model.onnx": content}
    for file, value in files.items():
        atomic_write(folder / file, value)
