"""`tusk demo`: learn handwritten digits from scratch in a few minutes, without a label, and show what was found.

Everything comes with the package's own dependencies: the digits are the 1,797 that scikit-learn ships.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from tusk.config import Config
from tusk.data.digits import Digits
from tusk.evaluation.localisation import LocalisationFigures, localisation_figures
from tusk.model.keypoints import Keypoints
from tusk.model.network import Network, Output
from tusk.model.storage import StoredModel, save_model
from tusk.presets import load_config, to_yaml
from tusk.report.draw import crop, draw_points, draw_score, enlarged, to_bytes, type_colours
from tusk.report.page import Curve, Figure, Page, PictureRow, TypeCard, write_page
from tusk.training.trainer import StepReport, Trainer

_SHOWN = 12  # canvases on the page
_TESTED = 300  # canvases of digits that training never saw, for the figures
_CROP = 24


@dataclass(frozen=True)
class Seen:
    """What the trained network says about the test canvases."""

    images: Tensor  # (N, 3, H, W)
    output: Output
    figures: LocalisationFigures


def run_demo(out: Path, minutes: float, seed: int, console: Console) -> Path:
    """Train, look, write; -> the page. The labels are used at the end, for the printed figures only."""
    config = load_config("digits")
    config = config.model_copy(update={"training": config.training.model_copy(update={"seed": seed})})
    console.print(f"Results go to [bold]{out}[/bold]")
    console.print(
        f"Learning from canvases of nine handwritten digits, without labels, for at most {minutes:g} minutes "
        f"on {torch.get_num_threads()} cores."
    )
    started = time.monotonic()
    trainer = Trainer(config, _canvases(config, seed))
    history = _train(trainer, minutes, console)
    spent = (time.monotonic() - started) / 60
    seen = _look(trainer.network.eval(), config)
    model_path = out / "model.safetensors"
    provenance = {"command": "tusk demo", "seed": seed, "minutes": round(spent, 2), "steps": trainer.step}
    save_model(model_path, StoredModel(trainer.network, config, provenance))
    (out / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    page = out / "report.html"
    write_page(page, _page(trainer.network, config, seen, history, spent))
    _print_findings(console, config, seen, spent, trainer.step)
    console.print(f"Model [bold]{model_path}[/bold]\nOpen the page [bold]{page}[/bold] in a browser to see it.")
    return page


def _canvases(config: Config, seed: int) -> Iterator[Tensor]:
    """uint8 (n, 3, H, W) without end."""
    dataset = Digits(split="train", seed=seed)
    rng = np.random.default_rng(seed)
    while True:
        images = dataset.images(rng.integers(len(dataset), size=config.training.batch // 2))
        yield torch.from_numpy(images).permute(0, 3, 1, 2)


def _train(trainer: Trainer, minutes: float, console: Console) -> list[StepReport]:
    history: list[StepReport] = []
    columns = (
        TextColumn("step {task.fields[step]}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[speed]:.0f} images/s  reconstruction error {task.fields[error]:.4f}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0, step=0, speed=0.0, error=float("nan"))
        for report in trainer.run(minutes):
            history.append(report)
            error, speed = report.losses["reconstruction"], report.images_per_second
            bar.update(task, completed=report.progress, step=report.step, speed=speed, error=error)
            if not console.is_terminal and report.step % 100 == 0:
                console.print(f"step {report.step}: {speed:.0f} images/s, reconstruction error {error:.4f}")
        bar.update(task, completed=1.0)
    return history


def _look(network: Network, config: Config) -> Seen:
    dataset = Digits(split="test", count=_TESTED)
    pixels = dataset.images(np.arange(_TESTED))  # (N, H, W, 3)
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    parts = []
    with torch.no_grad():
        for start in range(0, _TESTED, 50):
            parts.append(network(images[start : start + 50], missing="empty"))
    output = _joined(parts)
    truth = [dataset.truth(index) for index in range(_TESTED)]
    figures = localisation_figures(
        output.xy.numpy(),
        output.label.numpy(),
        [true.points for true in truth if true.points is not None],
        [true.classes for true in truth if true.classes is not None],
        type_count=config.model.types,
        class_count=10,
    )
    return Seen(images, output, figures)


def _joined(parts: list[Output]) -> Output:
    def joined(name: str) -> Tensor:
        return torch.cat([getattr(part, name) for part in parts])

    return Output(
        feature_map=joined("feature_map"),
        score_map=joined("score_map"),
        xy=joined("xy"),
        score=joined("score"),
        found=joined("found"),
        descriptors=joined("descriptors"),
        probability=joined("probability"),
        label=joined("label"),
        reconstruction=joined("reconstruction"),
        layer_rgb=None,
        layer_alpha=None,
    )


def _print_findings(console: Console, config: Config, seen: Seen, spent: float, steps: int) -> None:
    figures, labels = seen.figures, seen.output.label.flatten()
    counts = torch.bincount(labels, minlength=config.model.types).tolist()
    console.print(f"Learnt for {spent:.1f} minutes, {steps} steps.")
    console.print(
        f"On {_TESTED} canvases of digits it never saw: {figures.localisation:.1%} of {figures.things} digits found "
        f"within half their box; {figures.both:.1%} found and of the type that stands for their digit."
    )
    console.print("Types found: " + ", ".join(f"{number}: {count}" for number, count in enumerate(counts)))


def _page(network: Network, config: Config, seen: Seen, history: list[StepReport], spent: float) -> Page:
    output, types = seen.output, config.model.types
    rows = []
    for index in range(_SHOWN):
        image = to_bytes(seen.images[index].numpy())
        points = draw_points(image, output.xy[index].numpy(), output.label[index].numpy(), types, 4)
        score = draw_score(output.score_map[index, 0].numpy(), points.width)
        again = enlarged(to_bytes(output.reconstruction[index].numpy()), 4)
        rows.append(PictureRow((("points and types", points), ("score map", score), ("painted again", again))))
    figures = (
        Figure(f"{seen.figures.localisation:.1%}", "of digits found"),
        Figure(f"{seen.figures.both:.1%}", "found and of the right type"),
        Figure(f"{spent:.1f} min", "of learning"),
        Figure("0", "labels used to learn"),
    )
    every = max(1, len(history) // 400)
    thinned = history[::every]
    error = Curve("reconstruction error", [r.step for r in thinned], [r.losses["reconstruction"] for r in thinned])
    words = (
        "tusk was shown pictures of nine handwritten digits each, scattered at random, and nothing else. It learnt by "
        "itself where the digits are and which of them are alike.",
        f"The figures are for {_TESTED} canvases made of digits that it never saw; labels were used for these figures "
        "only.",
    )
    cards = [_card(network, config, seen, number) for number in range(types)]
    return Page("What tusk learnt from unlabelled digits", words, figures, rows, cards, (error,))


def _card(network: Network, config: Config, seen: Seen, number: int) -> TypeCard:
    """One type: its prototype decoded alone, and the finds that are surest to be of it."""
    output = seen.output
    own = output.label == number
    surest = torch.where(own, output.probability[..., number], -1.0).flatten().topk(8)
    per_image = output.label.shape[1]
    crops = []
    for value, place in zip(surest.values.tolist(), surest.indices.tolist(), strict=True):
        if value < 0:
            break
        image, point = divmod(place, per_image)
        x, y = output.xy[image, point].tolist()
        crops.append(enlarged(crop(to_bytes(seen.images[image].numpy()), x, y, _CROP), 2))
    size = 2 * config.model.multiple * -(-_CROP // (2 * config.model.multiple))
    centre = network.to_map(torch.tensor([[[size / 2 - 0.5, size / 2 - 0.5]]]))
    alone = Keypoints(centre, torch.full((1, 1), float(output.score.median())), torch.ones(1, 1, dtype=torch.bool))
    with torch.no_grad():
        prototype = network.prototypes.unit()[number].view(1, 1, -1)
        decoded = network.decode(alone, prototype, (size, size)).reconstruction[0]
    picture = enlarged(to_bytes(decoded.numpy()), 4)
    return TypeCard(number, type_colours(config.model.types)[number], int(own.sum()), picture, tuple(crops))
