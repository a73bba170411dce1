"""`tusk demo`: learn handwritten digits from scratch in a few minutes, without a label, and show what was found.

Everything comes with the package's own dependencies: the digits are the 1,797 that scikit-learn ships.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from tusk.config import Config
from tusk.data.digits import Digits
from tusk.evaluation.localisation import LocalisationFigures, localisation_figures
from tusk.model.keypoints import Keypoints
from tusk.model.network import Network, Output
from tusk.model.storage import load_model
from tusk.presets import load_config, to_yaml
from tusk.report.curves import read_curve
from tusk.report.draw import crop, draw_points, draw_score, enlarged, to_bytes, type_colours
from tusk.report.page import Figure, Page, PictureRow, TypeCard, write_page
from tusk.training.distributed import Ranks
from tusk.training.run import Run, look_at
from tusk.training.show import Show

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
    preset = load_config("digits")
    training = preset.training.model_copy(update={"seed": seed, "minutes": minutes})
    config = preset.model_copy(update={"training": training})
    console.print(f"Results go to {out}", soft_wrap=True, highlight=False)
    console.print(
        f"Learning from canvases of nine handwritten digits, without labels, for at most {minutes:g} minutes "
        f"on {torch.get_num_threads()} cores.",
        highlight=False,
    )
    (out / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    run = Run(
        config=config,
        folder=out,
        dataset=Digits(split="train", seed=seed),
        look=look_at(Digits(split="train", seed=seed + 1), 100),
        show=Show(console),
        command="tusk demo",
        ranks=Ranks(),
    )
    model = load_model(run.train(resume=False))
    seen = _look(model.network, config)
    page = out / "report.html"
    write_page(page, _page(model.network, config, seen, out, float(model.provenance["minutes"])))
    _print_findings(console, config, seen)
    console.print(
        f"Model {out / 'model.safetensors'}\nOpen {page} in a browser to see it.", soft_wrap=True, highlight=False
    )
    return page


def _look(network: Network, config: Config) -> Seen:
    dataset = Digits(split="test", count=_TESTED)
    pixels = dataset.images(np.arange(_TESTED))  # (N, H, W, 3)
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        starts = range(0, _TESTED, 50)
        output = _joined([network(images[start : start + 50], missing="empty") for start in starts])
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
    """Outputs of parts of a batch as that of the whole; the plain decoder has no layers to join."""
    joined = {
        field.name: torch.cat([getattr(part, field.name) for part in parts])
        for field in fields(Output)
        if not field.name.startswith("layer_")
    }
    return Output(**joined, layer_rgb=None, layer_alpha=None)


def _print_findings(console: Console, config: Config, seen: Seen) -> None:
    figures, labels = seen.figures, seen.output.label.flatten()
    counts = torch.bincount(labels, minlength=config.model.types).tolist()
    console.print(
        f"On {_TESTED} canvases of digits it never saw: {figures.localisation:.1%} of {figures.things} digits found "
        f"within half their box; {figures.both:.1%} found and of the type that stands for their digit.",
        soft_wrap=True,
        highlight=False,
    )
    told = ", ".join(f"{number}: {count}" for number, count in enumerate(counts))
    console.print(f"Types found: {told}", soft_wrap=True, highlight=False)


def _page(network: Network, config: Config, seen: Seen, folder: Path, minutes: float) -> Page:
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
        Figure(f"{minutes:.1f} min", "of learning"),
        Figure("0", "labels used to learn"),
    )
    words = (
        "tusk was shown pictures of nine handwritten digits each, scattered at random, and nothing else. It learnt by "
        "itself where the digits are and which of them are alike.",
        f"The figures are for {_TESTED} canvases made of digits that it never saw; labels were used for these figures "
        "only.",
    )
    cards = [_card(network, config, seen, number) for number in range(types)]
    curves = [read_curve(folder / "metrics.jsonl", "reconstruction", "reconstruction error")]
    return Page("What tusk learnt from unlabelled digits", words, figures, rows, cards, curves)


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
