"""`tusk demo`: learn handwritten digits from scratch in a few minutes, without a label, and show what was found.

Everything comes with the package's own dependencies: the digits are the 1,797 that scikit-learn ships.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console

from tusk.config import Config
from tusk.data.datasets.digits import Digits
from tusk.model.network import Network
from tusk.presets import load_config, to_yaml
from tusk.report.build import make_page, training_pages
from tusk.report.label_tables import label_tables
from tusk.report.page import Page, write_page
from tusk.report.predictions import Predictions, predict
from tusk.report.sample import sample_of
from tusk.report.subject import Images, open_subject
from tusk.training.display import ProgressDisplay
from tusk.training.distributed import Ranks
from tusk.training.run import Run, TrainingState, sample_validation_images

_LOOKED_AT = 100  # canvases for a look while it learns
_TESTED = 300  # canvases of digits that training never saw, for the figures


def run_demo(out: Path, minutes: float, seed: int, console: Console) -> Path:
    """Train, look, write; -> the page. The labels are used for the printed figures only."""
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
    page = out / "report.html"
    unseen = Digits(split="train", seed=seed + 1)
    pages = training_pages(page, config, Images(sample_of(unseen, _LOOKED_AT), "of other canvases"), "tusk demo")

    def page_on_the_way(network: Network, moment: TrainingState) -> None:
        if not moment.finished:  # the last one is about digits that it never saw
            pages(network, moment)

    run = Run(
        config=config,
        folder=out,
        dataset=Digits(split="train", seed=seed),
        validation=sample_validation_images(unseen, _LOOKED_AT),
        show=ProgressDisplay(console),
        command="tusk demo",
        ranks=Ranks(),
        write_page=page_on_the_way,
    )
    run.train(resume=False)
    subject = open_subject(str(out))
    tested = sample_of(Digits(split="test", count=_TESTED), _TESTED)
    write_page(page, _titled(make_page(subject, Images(tested, "of digits that it never saw"))))
    _print_findings(console, config, predict(subject.network, tested, 0, subject.settings))
    console.print(
        f"Model {out / 'model.safetensors'}\nOpen {page} in a browser to see it.", soft_wrap=True, highlight=False
    )
    return page


def _titled(page: Page) -> Page:
    return replace(page, title="What tusk learnt from unlabelled digits")


def _print_findings(console: Console, config: Config, predictions: Predictions) -> None:
    by_digit = label_tables(predictions, config.model.types, config.model.window)[0]
    console.print(
        f"On {_TESTED} canvases of digits it never saw: {by_digit.found / by_digit.things:.1%} of {by_digit.things} "
        f"digits found within half their box; {by_digit.right / by_digit.things:.1%} found and of the type that stands "
        "for their digit.",
        soft_wrap=True,
        highlight=False,
    )
    counts = predictions.counts(config.model.types).tolist()
    told = ", ".join(f"{number}: {count}" for number, count in enumerate(counts))
    console.print(f"Types found: {told}", soft_wrap=True, highlight=False)
