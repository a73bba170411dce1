"""Puts a page together: everything that is on it, from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import tusk
from tusk.config import Config
from tusk.detection.draw import type_colours
from tusk.evaluation.landmark_check import LandmarkCheck, are_landmarks, check_landmarks
from tusk.model.network import Network
from tusk.report.advice import remarks
from tusk.report.curves import read_charts
from tusk.report.draw import colour_names
from tusk.report.embedding import embed
from tusk.report.evidence import gather_evidence, training_length
from tusk.report.gallery import type_cards
from tusk.report.label_tables import LabelTable, label_tables
from tusk.report.layers import take_apart
from tusk.report.named import PageTypes, name_predictions, plain_types
from tusk.report.opening import make_opening
from tusk.report.page import Fact, Figure, Page, Section, write_page
from tusk.report.pictures import example_html, examples, joined, layered_html, panels_html, type_html
from tusk.report.plots import Confusion, Scatter, chart_html, confusion_html, scatter_html
from tusk.report.predictions import Predictions, predict
from tusk.report.remark import verdict_of
from tusk.report.subject import Images, Subject
from tusk.report.type_tree import read_tree, tree_html
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

    def write(network: Network, moment: TrainingState) -> str | None:
        subject = Subject(
            network,
            config.model_copy(update={"model": network.config}),  # its types may have been merged
            path.parent,
            command,
            moment.step,
            moment.seconds / 60,
            finished=moment.finished,
            least_gain=moment.least_gain,
            type_tree=read_tree(moment.type_tree, network.config.prototypes),
        )
        chosen = images if moment.finished else light
        page = make_page(subject, chosen, validation=moment.validation, plane=moment.finished)
        write_page(path, page)
        return None if page.verdict is None else page.verdict.sentence

    return write


def make_page(
    subject: Subject, images: Images, *, validation: ValidationFigures | None = None, plane: bool = True
) -> Page:
    """Nothing here draws from torch's random numbers: a training that writes pages is the same as one that does not."""
    network, config, sample = subject.network, subject.config, images.sample
    raw = predict(network, sample, _SHOWN, subject.settings)
    centres = network.prototypes.centres().detach().cpu()
    predictions, named = raw, plain_types(config.model.types, centres)
    if subject.naming is not None:
        predictions, named = name_predictions(raw, subject.naming, centres)
    types = named.count
    landmarks = _landmarks(predictions, types)
    tables = () if landmarks is not None else label_tables(predictions, types, config.model.window)
    if validation is None:
        validation = validate(network, config, sample.images[:_CHECKED], config.training.seed)
    charts = [] if subject.logs is None else read_charts(subject.logs)
    evidence = gather_evidence(network, raw, training_length(subject.step, config, charts))
    lines = remarks(raw, config, validation, evidence)
    return Page(
        title=f"What tusk learnt from {sample.name}",
        opening=make_opening(predictions, types, named.titles, tiles=config.data.fit == "tiles"),
        words=_words(subject, images, tables, landmarks),
        figures=_figures(predictions, tables, validation, named, landmarks),
        facts=_facts(subject, images),
        remarks=lines,
        verdict=verdict_of(lines),
        sections=[
            _examples(predictions, types),
            _types(network, predictions, tables, named),
            _tree(subject),
            _layers(network, predictions, types),
            _planes(predictions, tables, named) if plane else _empty("plane"),
            _confusions(predictions, tables, types),
            Section(
                "curves",
                "How it learnt",
                "From the first step of the training on the left to the last one on the right. Losses are what the "
                "training lowers; they are weighted, as they are added up.",
                joined([chart_html(chart) for chart in charts], "charts") if charts else "",
            ),
        ],
    )


def _landmarks(predictions: Predictions, types: int) -> LandmarkCheck | None:
    """Where the truth is landmarks: how well they are read off the points. None for things to find, or no truth."""
    sample = predictions.sample
    if not are_landmarks(sample.class_names, sample.truths):
        return None
    xy, label, found = predictions.xy.numpy(), predictions.label.numpy(), predictions.found.numpy()
    return check_landmarks(xy, label, found, sample.truths, types, max(sample.images.shape[-2:]))


def _words(
    subject: Subject, images: Images, tables: Sequence[LabelTable], landmarks: LandmarkCheck | None = None
) -> list[str]:
    model, count = subject.config.model, len(images.sample)
    words = []
    if not subject.finished:
        done = (subject.step or 0) / subject.config.training.steps
        words.append(f"The training is not finished: this is its state after {subject.step} steps ({done:.0%}).")
    sorts = "all of one type" if model.types == 1 else f"and sorts them into {model.types} types"
    summary = f"It marks up to {model.keypoints} keypoints in an image{',' if model.types == 1 else ''} {sorts}"
    if not tables:
        words.append(f"{summary}. This is what it makes of {_images(count)} {images.origin}.")
        if landmarks is not None:
            words.append(_landmark_words(landmarks))
        return words
    first = tables[0]
    right = " and ".join(f"{_share(table.right, table.things)} also have the right {table.title}" for table in tables)
    words.append(
        f"{summary}. In {_images(count)} {images.origin}, it found {_share(first.found, first.things)} of "
        f"{first.things:,} things; {right}, each type taken for the class that it is assigned to."
    )
    words.append("Labels were used for these figures only; nothing was learnt from them.")
    return words


def _landmark_words(landmarks: LandmarkCheck) -> str:
    better = landmarks.error < landmarks.mean_guess
    return (
        f"One linear layer reads the true landmarks off the points with an error of {landmarks.error:.1%} of "
        f"{landmarks.unit}; to guess the same mean place in every image has an error of {landmarks.mean_guess:.1%}, so "
        f"the points {'know' if better else 'do not know'} where the landmarks are. Labels were used for this figure "
        "only; nothing was learnt from them."
    )


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"


def _figures(
    predictions: Predictions,
    tables: Sequence[LabelTable],
    validation: ValidationFigures,
    types: PageTypes,
    landmarks: LandmarkCheck | None = None,
) -> list[Figure]:
    figures = []
    if landmarks is not None:
        guess = f"landmark error, as a share of {landmarks.unit}; the mean guess has {landmarks.mean_guess:.1%}"
        figures.append(Figure(f"{landmarks.error:.1%}", guess))
    if tables:
        figures.append(Figure(_share(tables[0].found, tables[0].things), "of the things found: a point lies on them"))
        figures += [
            Figure(_share(table.right, table.things), f"found, with the right {table.title}") for table in tables
        ]
    used = int((predictions.counts(types.count) > 0).sum())
    figures.append(
        Figure(f"{used} of {len(types.shown)}", "types in use: kinds of things that were found at least once")
    )
    agreement = "agreement, from 0 to 1: how often a thing keeps its type when its image is warped"
    figures.append(Figure(f"{validation.agreement:.2f}", agreement))
    if mean_image_error(predictions.sample.images) > ALIKE:
        share = explained_variance_of(float(predictions.error.mean()), predictions.sample.images)
        figures.append(Figure(f"{share:.0%}", "explained variance: how much of the images the points alone can redraw"))
    return figures


def _facts(subject: Subject, images: Images) -> list[Fact]:
    config = subject.config
    data, model, training = config.data, config.model, config.training
    source = "" if data.source is None else f", from {data.source_words}"
    decoder = "a layer for each keypoint" if model.decode == "layers" else "one picture from all keypoints"
    facts = [
        Fact("Trained on", f"{data.dataset}{source}, {data.size}x{data.size} pixels"),
        Fact("Shown on", f"{_images(len(images.sample))} {images.origin}"),
        Fact("Keypoints and types", f"at most {model.keypoints} in an image, {model.types} types"),
        Fact("Network", f"width {model.width}, {model.levels} levels, stride {model.stride}; {decoder}"),
    ]
    if subject.step is not None:
        facts.append(Fact("Steps", f"{subject.step:,}, of {training.steps:,} at most, {training.batch} images each"))
    if subject.minutes is not None:
        facts.append(Fact("Time", f"{subject.minutes:.1f} minutes of training"))
    facts.append(Fact("Seed", f"{training.seed}, of everything random"))
    if subject.command is not None:
        facts.append(Fact("Command", subject.command))
    facts.append(Fact("Version", f"tusk {tusk.__version__}"))
    return facts


def _examples(predictions: Predictions, types: int) -> Section:
    words = "A few of the images. Colours and numbers stand for the same types on the whole page."
    panels = {
        "points": "a dot on each thing that was found, the number of its type beside it; the count is in a corner.",
        "image": "what the network was given.",
        "score map": "where it expects a thing: the lighter, the surer.",
        "reconstruction": "the image redrawn from the points alone. What is missing in it, the points have missed. Its "
        "error is the mean squared difference from the image, from 0 to 1: lower is better.",
    }
    drawn = [example_html(example, types) for example in examples(predictions)]
    return Section("images", "What it detects", words, panels_html(panels) + joined(drawn, "examples"))


def _types(network: Network, predictions: Predictions, tables: Sequence[LabelTable], types: PageTypes) -> Section:
    cards = type_cards(network, predictions, types)
    words = (
        "Large: what the network takes for the typical thing of a type, drawn from its prototype. Small: things that "
    )
    words += "it is surest of, cut out of the images. Below: how many were found, and their share of all."
    if len(cards) < len(types.shown):
        words += f" Shown are the {len(cards)} most used of {len(types.shown)} types."
    drawn = [type_html(card, types.count, types.tag(card.number) or _meaning(card.number, tables)) for card in cards]
    return Section("types", "The types", words, joined(drawn, "types" if len(cards) <= _FEW else "types many"))


def _tree(subject: Subject) -> Section:
    tree, types = subject.type_tree, subject.network.config.types
    if tree is None:
        return _empty("tree")
    words = (
        f"Training made {len(tree.members)} clusters of the things and put those together that other clusterings, of "
        "the same things in other views, do not tell apart. The further to the right two join, the more seldom they "
        f"were put together; dashed joins were not made, which leaves {types} types. If two types are one kind to you, "
        "take them for one; if a type holds two kinds, train with more --types."
    )
    return Section("tree", "How types were put together", words, tree_html(tree, type_colours(types)))


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
    words = "The images whose things touch or overlap most, taken apart."
    panels = {
        "masks, by type": "each pixel in the colour of the type of the thing that it belongs to.",
        "layers": "below, one for each point: what the point draws, and beside it where that is opaque (white) or "
        "clear (black). The share says how many pixels of the image belong to it.",
    }
    body = panels_html(panels) + joined(drawn, "apart") if drawn else ""
    return Section("layers", "Layers and masks", words, body)


def _planes(predictions: Predictions, tables: Sequence[LabelTable], named: PageTypes) -> Section:
    plane, types = embed(predictions, named.centres[list(named.shown)]), named.count
    if plane is None:
        return _empty("plane")
    labels = predictions.label.flatten().numpy()[plane.chosen]
    names = named.titles
    by_type = Scatter(
        "By type",
        "Coloured by what the network learnt.",
        plane.descriptors,
        labels,
        names,
        type_colours(types),
        plane.prototypes,
    )
    scatters = [scatter_html(by_type)]
    for table in tables:
        values = table.of_keypoint.flatten()[plane.chosen]
        # So that a type and the class that it is assigned to have one colour, where there is one such type.
        colours = _class_colours(table, types)
        title = f"By {table.title}"
        scatter = Scatter(
            title, "Coloured by what the labels say.", plane.descriptors, values, table.names, colours, plane.prototypes
        )
        scatters.append(scatter_html(scatter))
    words = (
        f"Each dot is one of {len(plane.chosen):,} things that were found, placed by its descriptor (t-SNE): the more "
        "alike two things look to the network, the nearer they lie. Good types are separate clouds. Crosses are the "
        "prototypes, the middles of the types."
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
    words = "Rows are types, columns what the labels say: how many points of each type lie on which things; the last "
    words += (
        "column counts those on none. Framed: the class that the type is taken for. Good types have one dark field."
    )
    return Section("confusion", "Types and truth", words, joined(drawn, "confusions") if drawn else "")


def _empty(anchor: str) -> Section:
    return Section(anchor, "", "", "")
