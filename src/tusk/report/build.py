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
from tusk.report.pictures import example_html, examples, joined, layered_html, type_html
from tusk.report.plots import Confusion, Scatter, chart_html, confusion_html, scatter_html
from tusk.report.predictions import Predictions, predict
from tusk.report.subject import Images, Subject
from tusk.training.run import TrainingState, WritePage
from tusk.training.validation import ALIKE, ValidationFigures, explained_variance_of, mean_image_error, validate

_SHOWN = 12
_LIGHT = 60  # images for a page while the training goes on
_CHECKED = 200  # images for the validation: as many as training uses
_FEW = 24  # types whose cards are large
_NOWHERE = "none"


def training_pages(path: Path, config: Config, images: Images, command: str) -> WritePage:
    """What a training calls at every validation (a light page, without t-SNE) and at its end."""
    light = replace(images, sample=images.sample.first(_LIGHT))

    def write(network: Network, moment: TrainingState) -> None:
        subject = Subject(
            network,
            config,
            path.parent,
            command,
            moment.step,
            moment.seconds / 60,
            finished=moment.finished,
            least_gain=moment.least_gain,
        )
        chosen = images if moment.finished else light
        write_page(path, make_page(subject, chosen, validation=moment.validation, plane=moment.finished))

    return write


def make_page(
    subject: Subject, images: Images, *, validation: ValidationFigures | None = None, plane: bool = True
) -> Page:
    """Nothing here draws from torch's random numbers: a training that writes pages is the same as one that does not."""
    network, config, sample = subject.network, subject.config, images.sample
    types = config.model.types
    predictions = predict(network, sample, _SHOWN, subject.settings)
    tables = label_tables(predictions, types, config.model.window)
    if validation is None:
        validation = validate(network, config, sample.images[:_CHECKED], config.training.seed)
    charts = [] if subject.logs is None else read_charts(subject.logs)
    return Page(
        title=f"What tusk learnt from {sample.name}",
        words=_words(subject, images, tables),
        figures=_figures(predictions, tables, validation, types),
        facts=_facts(subject, images),
        remarks=remarks(predictions, config, validation),
        sections=[
            _examples(predictions, types),
            _types(network, predictions, tables),
            _layers(network, predictions, types),
            _planes(network, predictions, tables, types) if plane else _empty("plane"),
            _confusions(predictions, tables, types),
            Section(
                "curves",
                "How it learnt",
                "Losses are weighted, as they are added up.",
                joined([chart_html(chart) for chart in charts], "charts") if charts else "",
            ),
        ],
    )


def _words(subject: Subject, images: Images, tables: Sequence[LabelTable]) -> list[str]:
    model, count = subject.config.model, len(images.sample)
    words = []
    if not subject.finished:
        done = (subject.step or 0) / subject.config.training.steps
        words.append(f"The training is not finished: this is its state after {subject.step} steps ({done:.0%}).")
    summary = f"It marks up to {model.keypoints} keypoints in an image and sorts them into {model.types} types"
    if not tables:
        words.append(f"{summary}. This is what it makes of {_images(count)} {images.origin}.")
        return words
    first = tables[0]
    right = " and ".join(f"{_share(table.right, table.things)} also have the right {table.title}" for table in tables)
    words.append(
        f"{summary}. In {_images(count)} {images.origin}, it found {_share(first.found, first.things)} of "
        f"{first.things:,} things; {right}, each type taken for the class that it is assigned to."
    )
    words.append("Labels were used for these figures only; nothing was learnt from them.")
    return words


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"


def _figures(
    predictions: Predictions, tables: Sequence[LabelTable], validation: ValidationFigures, types: int
) -> list[Figure]:
    figures = []
    if tables:
        figures.append(Figure(_share(tables[0].found, tables[0].things), "of the things found"))
        figures += [
            Figure(_share(table.right, table.things), f"found, with the right {table.title}") for table in tables
        ]
    used = int((predictions.counts(types) > 0).sum())
    figures.append(Figure(f"{used} of {types}", "types in use"))
    figures.append(Figure(f"{validation.agreement:.2f}", "agreement of types between two views, from 0 to 1"))
    if mean_image_error(predictions.sample.images) > ALIKE:
        share = explained_variance_of(float(predictions.error.mean()), predictions.sample.images)
        figures.append(Figure(f"{share:.0%}", "explained variance of the images"))
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


def _examples(predictions: Predictions, types: int) -> Section:
    words = (
        "Points are coloured and numbered by the type that was learnt for them; the same colours stand for the same "
    )
    words += "types on the whole page. The last picture is the reconstruction from the points alone."
    drawn = [example_html(example, types) for example in examples(predictions)]
    return Section("images", "What it detects", words, joined(drawn, "examples"))


def _types(network: Network, predictions: Predictions, tables: Sequence[LabelTable]) -> Section:
    types = network.config.types
    cards = type_cards(network, predictions)
    words = "Large: the decoding of a type's prototype, alone in the middle of an empty image. Below it the detections "
    words += "that are surest to be of the type."
    if len(cards) < types:
        words += f" Shown are the {len(cards)} most used of {types} types."
    drawn = [type_html(card, types, _meaning(card.number, tables)) for card in cards]
    return Section("types", "The types", words, joined(drawn, "types" if len(cards) <= _FEW else "types many"))


def _meaning(number: int, tables: Sequence[LabelTable]) -> str | None:
    """What most of a type's keypoints lie on, where that is known."""
    names = [
        table.names[int(table.class_of_type[number])]
        for table in tables
        if table.class_of_type[number] >= 0 and table.confusion[number, :-1].any()
    ]
    return ", ".join(names) or None


def _layers(network: Network, predictions: Predictions, types: int) -> Section:
    drawn = [layered_html(image, types) for image in take_apart(network, predictions)]
    words = (
        "Images whose things touch or overlap most. Each keypoint decodes to a layer, shown as far as it is opaque, "
    )
    words += "and beside it its alpha; a pixel belongs to the layer that has most of it."
    return Section("layers", "Layers and masks", words, joined(drawn, "apart") if drawn else "")


def _planes(network: Network, predictions: Predictions, tables: Sequence[LabelTable], types: int) -> Section:
    plane = embed(predictions, network.prototypes.unit().detach())
    if plane is None:
        return _empty("plane")
    labels = predictions.label.flatten().numpy()[plane.chosen]
    names = tuple(f"type {number}" for number in range(types))
    by_type = Scatter(
        "By type", "What was learnt.", plane.descriptors, labels, names, type_colours(types), plane.prototypes
    )
    scatters = [scatter_html(by_type)]
    for table in tables:
        values = table.of_keypoint.flatten()[plane.chosen]
        # So that a type and the class that it is assigned to have one colour, where there is one such type.
        colours = _class_colours(table, types)
        title = f"By {table.title}"
        scatter = Scatter(title, "What is true.", plane.descriptors, values, table.names, colours, plane.prototypes)
        scatters.append(scatter_html(scatter))
    words = (
        f"{len(plane.chosen):,} descriptors on a plane (t-SNE): what is alike lies together. Crosses are prototypes."
    )
    return Section("plane", "How types lie apart", words, joined(scatters, "scatters"))


def _class_colours(table: LabelTable, types: int) -> list[tuple[int, int, int]]:
    """Their own where classes are colours; else that of the type mostly assigned to each, or one that is left."""
    named = colour_names(table.names)
    if named is not None:
        return named
    colours = type_colours(max(types, len(table.names)))
    chosen: list[tuple[int, int, int] | None] = [None] * len(table.names)
    for column in range(len(table.names)):
        own = np.nonzero(table.class_of_type == column)[0]
        if len(own):
            chosen[column] = colours[int(own[table.confusion[own, column].argmax()])]
    spare = iter([colour for colour in colours if colour not in chosen] + colours)
    return [next(spare) if colour is None else colour for colour in chosen]


def _confusions(predictions: Predictions, tables: Sequence[LabelTable], types: int) -> Section:
    counts = predictions.counts(types).numpy()
    colours = type_colours(types)
    drawn = []
    for table in tables:
        used = [number for number in range(types) if counts[number]]
        # Types of the same class under one another, in the order of the classes: a diagonal, if all is well.
        unset = len(table.names)
        used.sort(key=lambda number: (int(table.class_of_type[number]) % (unset + 1), -int(counts[number])))
        confusion = Confusion(
            title=f"Types and {table.title}",
            names=(*table.names, _NOWHERE),
            types=tuple(used),
            counts=table.confusion[used],
            colours=[colours[number] for number in used],
            right=tuple(int(table.class_of_type[number]) for number in used),
        )
        drawn.append(confusion_html(confusion))
    words = "How many keypoints of each type lie on which things; the last column counts those on none. Framed: the "
    words += "class that the type is assigned to."
    return Section("confusion", "Types and truth", words, joined(drawn, "confusions") if drawn else "")


def _empty(anchor: str) -> Section:
    return Section(anchor, "", "", "")
