"""What `tusk serve` does: a model, its names, and pictures, on a page of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tusk.data.sources import find_files
from tusk.device import choose_device, use_device
from tusk.model.storage import load_model
from tusk.naming import NamesFile, names_path
from tusk.serve.pictures import Pictures
from tusk.serve.server import Listen, Server, open_socket
from tusk.serve.workbench import Workbench
from tusk.weights import model_path


def serve_model(
    model: str,
    pictures: Sequence[str],
    listen: Listen,
    *,
    keypoints: int | None = None,
    names: Path | None = None,
    device: str = "auto",
    ready: Callable[[str, Workbench], None] = lambda *_: None,
) -> None:
    """Until it is stopped. ready: called with the address once it answers there."""
    source = find_files(list(pictures)) if pictures else None
    path = model_path(model)
    place = choose_device(device)
    opened = open_socket(listen)
    stored = load_model(path)
    use_device(place)
    stored.network.to(place)
    file = NamesFile(names_path(path) if names is None else names, stored)
    bench = Workbench(stored, model, file, Pictures(source), keypoints)
    server = Server(bench, listen, opened)
    ready(server.address, bench)
    server.run()
