"""Puts a page together: everything that is on it, from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import tusk
from tusk.config import Config
from tusk.detection.draw import type_colours
from tusk.model.network import Network
from tusk.report.advice import remarks
from tusk.report.curves import read_charts
from tusk.report.draw import colour_names
from tusk.report.embedding import embed
from tusk.report.gallery import type_cards
from tusk.report.label_tables import LabelTable, label_tables
from tusk.report.layers import take_apart
from tusk.report.page import Fact, Figure, Page, Section, write_page
from tusk.report.pictures import joined, layered_html, sight_html, sights, type_html
from tusk.report.plots import Confusion, Scatter, chart_html, confusion_html, scatter_html
from tusk.report.predictions import Predictions, predict
from tusk.report.subject import Images, Subject
from tusk.training.run import TrainingState, WritePage
from tusk.training.validation import ALIKE, ValidationFigures, explained_variance_of, mean_image_error, validate

_SHOWN = 12
_LIGHT = 60  # images for a page while the training goes on
_CHECKED = 200  # images for the figures of health: as many as training looks at
_FEW = 24  # types whose cards are large
_NOWHERE = "none"


def training_pages(path: Path, config: Config, images: Images, command: str) -> WritePage:
    """What a training calls at every look at itself (a light page, without t-SNE) and at its end."""
    light = replace(images, sample=images.sample.first(_LIGHT))

    def write(network: Network, moment: TrainingState) -> None:
        subject = Subject(
            network, config, path.parent, command, moment.step, moment.seconds / 60, finished=moment.finished
        )
        chosen = images if moment.finished else light
        write_page(path, make_page(subject, chosen, health=moment.health, plane=moment.finished))

    return write


def make_page(subject: Subject, images: Images, *, health: ValidationFigures | None = None, plane: bool = True) -> Page:
    """Nothing here draws from torch's random numbers: a training that writes pages is the same as one that does not."""
    network, config, sample = subject.network, subject.config, images.sample
    types = config.model.types
    predictions = predict(network, sample, _SHOWN)
    kinds = label_tables(predictions, types, config.model.window)
    if health is None:
        health = validate(network, config, sample.images[:_CHECKED], config.training.seed)
    charts = [] if subject.logs is None else read_charts(subject.logs)
    return Page(
        title=f"What tusk learnt from {sample.name}",
        words=_words(subject, images, kinds),
        figures=_figures(predictions, kinds, health, types),
        facts=_facts(subject, images),
        remarks=remarks(predictions, config, health),
        sections=[
            _sights(predictions, types),
            _types(network, predictions, kinds),
            _layers(network, predictions, types),
            _planes(network, predictions, kinds, types) if plane else _empty("plane"),
            _confusions(predictions, kinds, types),
            Section(
                "curves",
                "How it learnt",
                "Losses are weighted, as they are added up.",
                joined([chart_html(chart) for chart in charts], "charts") if charts else "",
            ),
        ],
    )


def _words(subject: Subject, images: Images, kinds: Sequence[LabelTable]) -> list[str]:
    model, count = subject.config.model, len(images.sample)
    words = []
    if not subject.finished:
        done = (subject.step or 0) / subject.config.training.steps
        words.append(f"The training is not finished: this is its state after {subject.step} steps ({done:.0%}).")
    told = f"It marks up to {model.keypoints} keypoints in an image and sorts them into {model.types} types"
    if not kinds:
        words.append(f"{told}. This is what it makes of {_images(count)} {images.origin}.")
        return words
    first = kinds[0]
    right = " and ".join(f"{_share(kind.right, kind.things)} also have the right {kind.title}" for kind in kinds)
    words.append(
        f"{told}. In {_images(count)} {images.origin}, it found {_share(first.found, first.things)} of "
        f"{first.things:,} things; {right}, going by what their type stands for."
    )
    words.append("Labels were used for these figures only; nothing was learnt from them.")
    return words


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"


def _figures(
    predictions: Predictions, kinds: Sequence[LabelTable], health: ValidationFigures, types: int
) -> list[Figure]:
    figures = []
    if kinds:
        figures.append(Figure(_share(kinds[0].found, kinds[0].things), "of the things found"))
        figures += [Figure(_share(kind.right, kind.things), f"found, with the right {kind.title}") for kind in kinds]
    used = int((predictions.counts(types) > 0).sum())
    figures.append(Figure(f"{used} of {types}", "types in use"))
    figures.append(Figure(f"{health.agreement:.2f}", "agreement of types between two views, from 0 to 1"))
    if mean_image_error(predictions.sample.images) > ALIKE:
        share = explained_variance_of(float(predictions.error.mean()), predictions.sample.images)
        figures.append(Figure(f"{share:.0%}", "of what differs between the images is painted again"))
    return figures


def _facts(subject: Subject, images: Images) -> list[Fact]:
    config = subject.config
    data, model, training = config.data, config.model, config.training
    source = "" if data.source is None else f", from {data.source}"
    decoder = "a layer for each keypoint" if model.decode == "layers" else "one picture from all keypoints"
    facts = [
        Fact("Trained on", f"{data.dataset}{source}, {data.size}x{data.size} pixels"),
        Fact("Shown on", f"{_images(len(images.sample))} {images.origin}"),
        Fact("Keypoints and types", f"{model.keypoints} in an image, {model.types} types"),
        Fact("Network", f"width {model.width}, {model.levels} levels, stride {model.stride}; {decoder}"),
    ]
    if subject.step is not None:
        facts.append(Fact("Steps", f"{subject.step:,}, of {training.steps:,} at most, {training.batch} images each"))
    if subject.minutes is not None:
        facts.append(Fact("Time", f"{subject.minutes:.1f} minutes of training"))
    facts.append(Fact("Seed", str(training.seed)))
    if subject.command is not None:
        facts.append(Fact("Command", subject.command))
    facts.append(Fact("Version", f"tusk {tusk.__version__}"))
    return facts


def _sights(predictions: Predictions, types: int) -> Section:
    words = (
        "Points are coloured and numbered by the type that was learnt for them; the same colours stand for the same "
    )
    words += "types on the whole page. The last picture is painted from the points alone."
    drawn = [sight_html(sight, types) for sight in sights(predictions)]
    return Section("images", "What it sees", words, joined(drawn, "sights"))


def _types(network: Network, predictions: Predictions, kinds: Sequence[LabelTable]) -> Section:
    types = network.config.types
    cards = type_cards(network, predictions)
    words = "Large: what a type's prototype, alone in the middle of an empty image, is painted as. Below it the finds "
    words += "that are surest to be of the type."
    if len(cards) < types:
        words += f" Shown are the {len(cards)} most used of {types} types."
    drawn = [type_html(card, types, _meaning(card.number, kinds)) for card in cards]
    return Section("types", "The types", words, joined(drawn, "types" if len(cards) <= _FEW else "types many"))


def _meaning(number: int, kinds: Sequence[LabelTable]) -> str | None:
    """What most of a type's keypoints lie on, where that is known."""
    told = [
        kind.names[int(kind.class_of_type[number])]
        for kind in kinds
        if kind.class_of_type[number] >= 0 and kind.confusion[number, :-1].any()
    ]
    return ", ".join(told) or None


def _layers(network: Network, predictions: Predictions, types: int) -> Section:
    drawn = [layered_html(image, types) for image in take_apart(network, predictions)]
    words = (
        "Images whose things touch or overlap most. Each keypoint paints a layer, shown as far as it is opaque, and "
    )
    words += "beside it its alpha; a pixel belongs to the layer that has most of it."
    return Section("layers", "Layers and masks", words, joined(drawn, "apart") if drawn else "")


def _planes(network: Network, predictions: Predictions, kinds: Sequence[LabelTable], types: int) -> Section:
    plane = embed(predictions, network.prototypes.unit().detach())
    if plane is None:
        return _empty("plane")
    labels = predictions.label.flatten().numpy()[plane.chosen]
    names = tuple(f"type {number}" for number in range(types))
    by_type = Scatter(
        "By type", "What was learnt.", plane.descriptors, labels, names, type_colours(types), plane.prototypes
    )
    scatters = [scatter_html(by_type)]
    for kind in kinds:
        values = kind.of_keypoint.flatten()[plane.chosen]
        # So that a type and the kind that it stands for have one colour, where there is one such type.
        colours = _kind_colours(kind, types)
        title = f"By {kind.title}"
        scatter = Scatter(title, "What is true.", plane.descriptors, values, kind.names, colours, plane.prototypes)
        scatters.append(scatter_html(scatter))
    words = (
        f"{len(plane.chosen):,} descriptors on a plane (t-SNE): what is alike lies together. Crosses are prototypes."
    )
    return Section("plane", "How types lie apart", words, joined(scatters, "scatters"))


def _kind_colours(kind: LabelTable, types: int) -> list[tuple[int, int, int]]:
    """Their own where kinds are colours; else that of the type that mostly stands for each, or one that is left."""
    named = colour_names(kind.names)
    if named is not None:
        return named
    colours = type_colours(max(types, len(kind.names)))
    chosen: list[tuple[int, int, int] | None] = [None] * len(kind.names)
    for column in range(len(kind.names)):
        own = np.nonzero(kind.class_of_type == column)[0]
        if len(own):
            chosen[column] = colours[int(own[kind.confusion[own, column].argmax()])]
    spare = iter([colour for colour in colours if colour not in chosen] + colours)
    return [next(spare) if colour is None else colour for colour in chosen]


def _confusions(predictions: Predictions, kinds: Sequence[LabelTable], types: int) -> Section:
    counts = predictions.counts(types).numpy()
    colours = type_colours(types)
    drawn = []
    for kind in kinds:
        used = [number for number in range(types) if counts[number]]
        # Types that stand for the same kind under one another, in the order of the kinds: a diagonal, if all is well.
        unset = len(kind.names)
        used.sort(key=lambda number: (int(kind.class_of_type[number]) % (unset + 1), -int(counts[number])))
        table = Confusion(
            title=f"Types and {kind.title}",
            names=(*kind.names, _NOWHERE),
            types=tuple(used),
            counts=kind.confusion[used],
            colours=[colours[number] for number in used],
            right=tuple(int(kind.class_of_type[number]) for number in used),
        )
        drawn.append(confusion_html(table))
    words = "How many keypoints of each type lie on which things; the last column counts those on none. Framed: what "
    words += "the type stands for."
    return Section("confusion", "Types and truth", words, joined(drawn, "confusions") if drawn else "")


def _empty(anchor: str) -> Section:
    return Section(anchor, "", "", "")
