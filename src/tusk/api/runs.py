"""What the command line needs beside train and Model: sources, folders of results, pages of unfinished runs."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from tusk.api.model import Model
from tusk.device import choose_device, device_words, use_device
from tusk.folders import new_folder
from tusk.model.authors import network_from_authors, read_authors_file
from tusk.model.storage import StoredModel, save_model
from tusk.presets import load_config
from tusk.progress import stderr_console
from tusk.report.subject import open_subject
from tusk.report.write import Report, write_report
from tusk.training.distributed import refuse_together

__all__ = ["import_authors", "prepare_torch", "refuse_together", "report_run", "say_device"]


def prepare_torch() -> None:
    """For a process of our own: use every core that it may run on, unless OMP_NUM_THREADS says otherwise.

    The allocator is set up by importing `tusk.api`, for notebooks too.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def say_device(model: Model) -> Model:
    """Say on stderr where it runs, where that is no CPU; -> the model."""
    if model.device.type != "cpu":
        stderr_console().print(f"Runs on {device_words(model.device)}")
    return model


def report_run(
    run: str, out: Path | None, data: str | None, count: int, *, trust_source: bool = False, device: str = "auto"
) -> Report:
    """The page of a run's folder, finished or not, of a model file, or of a model by its name.

    trust_source: open the folder of pictures that a model file names; that of a run's folder always is.
    """
    place = choose_device(device)
    subject = open_subject(run)
    use_device(place)
    subject.network.to(place)
    folder = Path(run)
    if out is None:  # a model by itself has no folder of its own
        out = (folder if folder.is_dir() else new_folder(Path("runs/report") / folder.stem)) / "report.html"
    return write_report(subject, out, data, count, trust_source=trust_source)


def import_authors(file: Path, out: Path, preset: str) -> None:
    """Turn a checkpoint of the paper's authors into a model file."""
    paper = load_config(f"{preset.partition('/')[0]}/paper")
    network = network_from_authors(
        read_authors_file(file),
        keypoints=paper.model.keypoints,
        kernel=paper.model.window,
        layers=paper.model.decode == "layers",
        name=str(file),
    )
    whole = paper.model_copy(update={"model": network.config})
    save_model(out, StoredModel(network, whole, {"imported from": file.name, "preset": preset}))
