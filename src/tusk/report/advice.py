"""How a run is doing, in sentences, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config import Config
from tusk.report.predictions import Predictions
from tusk.training.validation import ALIKE, ValidationFigures, mean_image_error

_DEAD = 1e-3  # share of the keypoints below which a type counts as unused: as in validation
_EMPTY = 0.05  # share of the keypoints on nothing from which it is mentioned


@dataclass(frozen=True)
class Remark:
    """One sentence; not well means that there is something to do."""

    well: bool
    words: str


def remarks(predictions: Predictions, config: Config, validation: ValidationFigures) -> list[Remark]:
    """What is wrong first."""
    found = [
        *_types(predictions, config),
        _places(predictions, config),
        _spread(validation),
        _agreement(validation, config),
        _reconstruction(predictions),
    ]
    return sorted(found, key=lambda remark: remark.well)


def empty_keypoints(predictions: Predictions, window: int) -> Tensor:
    """(N, K) bool: on the background, or, if the network has none, in a uniform region: where the image hardly varies
    around a keypoint, compared with the image as a whole. (A large thing of one colour is uniform inside.)"""
    if predictions.bare is not None:
        return predictions.bare
    grey = predictions.sample.images.float().mean(1, keepdim=True) / 255  # (N, 1, H, W)
    reach = window // 2
    padded = F.pad(grey, (reach, reach, reach, reach), mode="replicate")
    mean = F.avg_pool2d(padded, 2 * reach + 1, stride=1)
    variance = F.avg_pool2d(padded.square(), 2 * reach + 1, stride=1) - mean.square()
    deviation = variance.clamp_min(0).sqrt()[:, 0]  # (N, H, W)
    height, width = deviation.shape[-2:]
    columns = predictions.xy[..., 0].round().long().clamp(0, width - 1)  # (N, K)
    rows = predictions.xy[..., 1].round().long().clamp(0, height - 1)
    around = deviation.flatten(1).gather(1, rows * width + columns)
    whole = grey.flatten(1).std(1, correction=0)[:, None]
    return (around < torch.maximum(0.1 * whole, torch.full_like(whole, 0.01))) & predictions.found


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
                False,
                f"{len(dead)} of {types} types {verb} hardly used ({_listed(dead)}): {what}, or let idle types start "
                "again where the busy ones are (--training.restart-dead-every 200).",
            )
        )
    else:
        found.append(Remark(True, "The one type is in use." if types == 1 else f"All {types} types are in use."))
    largest = int(shares.argmax())
    if types > 1 and float(shares.max()) > 0.5 + 0.8 / types:
        found.append(
            Remark(
                False,
                f"Type {largest} takes {float(shares.max()):.0%} of the keypoints: ask for more types, or raise the "
                "weight that keeps their use even (--losses.mutual-information.weight 0.03).",
            )
        )
    return found


def _places(predictions: Predictions, config: Config) -> Remark:
    model = config.model
    on_nothing = empty_keypoints(predictions, model.window)
    idle = float((on_nothing | ~predictions.found).float().mean())
    if idle <= _EMPTY:
        return Remark(True, f"{1 - idle:.0%} of the keypoints lie on something.")
    words = f"{idle:.0%} of the keypoints lie where the image is empty"
    fewer = max(1, round(model.keypoints * (1 - idle)))
    advice = f"ask for fewer (--keypoints {fewer})" if fewer < model.keypoints else "train it for longer"
    counts = predictions.counts(model.types)
    empty = torch.bincount(predictions.label[on_nothing], minlength=model.types)
    ground = [number for number in range(model.types) if 2 * int(empty[number]) > int(counts[number])]
    if ground and 2 * int(empty[ground].sum()) > int(empty.sum()):
        which = f"type {ground[0]}" if len(ground) == 1 else f"types {_listed(ground)}"
        return Remark(
            False, f"{words}, mostly of {which}, the background: leave that out when you use it, or {advice}."
        )
    return Remark(False, f"{words}: {advice}, or leave out those with low scores when you use the model.")


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" and others" if len(numbers) > 10 else "")


def _spread(validation: ValidationFigures) -> Remark:
    if validation.spread < 0.1:
        return Remark(
            False,
            f"The descriptors are nearly all alike (spread {validation.spread:.2f} of 1), so types mean little: "
            "standardise them (--model.descriptor-space standardised) or let keypoints tell each other apart "
            "(--losses.info-nce.weight 0.03).",
        )
    return Remark(True, f"The descriptors differ from one another (spread {validation.spread:.2f} of 1).")


def _agreement(validation: ValidationFigures, config: Config) -> Remark:
    if config.model.types > 1 and validation.agreement < 0.3:
        return Remark(
            False,
            f"The same keypoint often gets another type in another view (agreement {validation.agreement:.2f} of 1): "
            "train it for longer, or with several seeds and keep the best (--seeds 3).",
        )
    return Remark(
        True,
        f"A keypoint keeps its type when the image is warped (agreement {validation.agreement:.2f} of 1, mean "
        f"probability of the type {validation.confidence:.2f}).",
    )


def _reconstruction(predictions: Predictions) -> Remark:
    own, mean = float(predictions.error.mean()), mean_image_error(predictions.sample.images)
    if len(predictions.sample) < 2 or mean < ALIKE:
        return Remark(True, f"The mean squared error of the reconstruction is {own:.4f}.")
    if own >= 0.95 * mean:
        return Remark(
            False,
            f"The reconstruction is no better than the mean image (error {own:.4f} against {mean:.4f}): train it "
            "for longer, or with more keypoints.",
        )
    return Remark(
        True, f"The reconstruction from keypoints alone explains {1 - own / mean:.0%} of the variance of the images."
    )
