"""How a run is doing, in sentences, each with what to do about it. Where the limits come from: docs/verdict.md."""

from __future__ import annotations

from tusk.config import Config, Schedule
from tusk.report.evidence import Evidence
from tusk.report.point_advice import listed, point_remarks, size_advice
from tusk.report.predictions import Predictions
from tusk.report.remark import Remark, in_order
from tusk.training.validation import ALIKE, ValidationFigures, mean_image_error

_DEAD = 1e-3  # share of the points below which a type counts as unused: as in validation
_PLACES = 0.15  # of the offset to the next point is foretold by the type: mentioned from here
_EXPLAINED = 0.4  # of the variance of the images: below it, much of them is not in the points
_SHORT = 5000  # images drawn: fewer have not been enough for any run that was measured
_TOLD_APART = 0.03  # weight of InfoNCE that has been enough
_FALLING = 0.1  # the loss fell by more than this in the last fifth of the training


def remarks(
    predictions: Predictions, config: Config, validation: ValidationFigures, evidence: Evidence
) -> list[Remark]:
    """What is wrong first; among equals, what tells most about the points."""
    found = [
        *point_remarks(predictions, config, evidence),
        *_types(predictions, config),
        _places(config, evidence),
        _spread(validation, config),
        _agreement(validation, config),
        _reconstruction(predictions),
        _length(evidence),
    ]
    return in_order([remark for remark in found if remark is not None])


def _types(predictions: Predictions, config: Config) -> list[Remark]:
    types = config.model.types
    counts = predictions.counts(types)
    shares = counts / counts.sum().clamp_min(1)
    dead = [number for number in range(types) if float(shares[number]) <= _DEAD]
    found = []
    if dead:
        alive, verb = types - len(dead), "is" if len(dead) == 1 else "are"
        what = f"ask for fewer (--types {alive})" if alive else "train it for longer"
        found.append(
            Remark(
                "warn",
                f"{len(dead)} of {types} types {verb} hardly used ({listed(dead)})",
                f"{what}, or let idle types start again where the busy ones are (--training.restart-dead-every 200)",
                minor=bool(alive),
            )
        )
    else:
        found.append(Remark("ok", "The one type is in use" if types == 1 else f"All {types} types are in use"))
    largest = int(shares.argmax())
    if types > 1 and float(shares.max()) > 0.5 + 0.8 / types:
        more = "" if dead else "ask for more types, or "  # not where some idle already
        even = "raise the weight that keeps their use even (--losses.mutual-information.weight 0.03)"
        found.append(Remark("warn", f"Type {largest} takes {float(shares.max()):.0%} of the points", more + even))
    return found


def _places(config: Config, evidence: Evidence) -> Remark | None:
    if config.model.types < 2 or config.model.keypoints < 2:
        return None
    if evidence.places < _PLACES:
        return Remark("ok", "Types do not depend on where the next point lies, as kinds of things should not")
    return Remark(
        "warn",
        "Types look like places on one thing rather than kinds of things: a point's type foretells "
        f"{evidence.places:.0%} of where the next point lies",
        f"good for landmarks; to count things, {size_advice(config)}",
    )


def _spread(validation: ValidationFigures, config: Config) -> Remark:
    if validation.spread < 0.1:
        steps = []
        if config.model.descriptor_space != "standardised":
            steps.append("standardise them (--model.descriptor-space standardised)")
        if _highest(config.losses.info_nce.weight) < _TOLD_APART:
            steps.append(f"let keypoints tell each other apart (--losses.info-nce.weight {_TOLD_APART})")
        # Where all things are of one type, the descriptors have nothing to tell apart.
        several = config.model.types > 1
        return Remark(
            "bad" if several else "warn",
            f"The descriptors are nearly all alike (spread {validation.spread:.2f} of 1), so "
            + ("types mean little" if several else "kinds of things would not be told apart"),
            " or ".join(steps) or "train it for longer, or with several seeds and keep the best (--seeds 3)",
        )
    return Remark("ok", f"The descriptors differ from one another (spread {validation.spread:.2f} of 1)")


def _highest(weight: Schedule) -> float:
    return weight if isinstance(weight, int | float) else max(value for _, value in weight)


def _agreement(validation: ValidationFigures, config: Config) -> Remark | None:
    if config.model.types < 2:
        return None
    if validation.agreement < 0.3:
        return Remark(
            "bad" if validation.agreement < 0.15 else "warn",
            f"The same point often gets another type in another view (agreement {validation.agreement:.2f} of 1)",
            "train it for longer, or with several seeds and keep the best (--seeds 3)",
        )
    return Remark(
        "ok",
        f"A point keeps its type when the image is warped (agreement {validation.agreement:.2f} of 1, mean "
        f"probability of the type {validation.confidence:.2f})",
    )


def _reconstruction(predictions: Predictions) -> Remark:
    own, mean = float(predictions.error.mean()), mean_image_error(predictions.sample.images)
    if len(predictions.sample) < 2 or mean < ALIKE:
        return Remark("ok", f"The mean squared error of the reconstruction is {own:.4f}")
    longer = "train it for longer, or with more keypoints"
    if own >= 0.95 * mean:
        against = f"error {own:.4f} against {mean:.4f}"
        return Remark("bad", f"The reconstruction is no better than the mean image ({against})", longer)
    fact = f"The reconstruction from points alone explains {1 - own / mean:.0%} of the variance of the images"
    return Remark("ok", fact) if 1 - own / mean >= _EXPLAINED else Remark("warn", fact, longer)


def _length(evidence: Evidence) -> Remark | None:
    length = evidence.learnt
    if length is None:
        return None
    seen = f"{length.step:,} steps, {length.images:,} images"
    if length.images < _SHORT:
        return Remark(
            "warn",
            f"The training was short ({seen}, of {length.planned:,} steps planned)",
            "train it for longer (--minutes)",
        )
    if length.still_falling > _FALLING:
        fell = f"by {length.still_falling:.0%} in its last fifth"
        return Remark(
            "warn", f"The loss was still falling when the training ended, {fell}", "train it for longer (--minutes)"
        )
    return Remark("ok", f"The training was long enough for its loss to settle ({seen})")
