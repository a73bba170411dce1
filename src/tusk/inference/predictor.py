"""A model at work: pictures in, `Detections` in the pictures' own pixels out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.data.images import read_picture
from tusk.errors import UsageError
from tusk.inference.detections import Detections
from tusk.inference.fitting import FittedPicture, fit_picture
from tusk.inference.gain import gains
from tusk.inference.inputs import OneImage, each, is_one, to_picture
from tusk.inference.look import look
from tusk.inference.masks import mask_map
from tusk.model.keypoints import most_peaks
from tusk.model.layers import keep_layers
from tusk.model.network import Output
from tusk.model.parts import whole_things

if TYPE_CHECKING:
    from tusk.model.storage import StoredModel

BATCH = 8


class Predictor:
    """Finds up to `keypoints` things in each picture; those below a score or gain are left out."""

    def __init__(
        self,
        model: StoredModel,
        keypoints: int | None = None,
        min_score: float = 0.0,
        min_gain: float = 0.0,
        batch: int = BATCH,
    ) -> None:
        if keypoints is not None and keypoints < 1:
            raise UsageError("keypoints", f"{keypoints} cannot be looked for", "give 1 or more")
        if not 0 <= min_score <= 1:
            raise UsageError("min_score", f"{min_score:g} is no score", "give a number from 0 to 1")
        if math.isnan(min_gain):
            raise UsageError("min_gain", "it is not a number", "give one, such as 0 or 2.5")
        if batch < 1:
            raise UsageError("batch", f"{batch} images at once are too few", "give 1 or more")
        self._network = model.network.eval()
        self._config = model.config
        self._keypoints = keypoints or model.config.model.keypoints
        self._min_score, self._min_gain = min_score, min_gain
        self._batch = batch

    def detect(self, images: OneImage | Iterable[OneImage]) -> Detections | list[Detections]:
        """One picture -> its detections, several -> a list of them."""
        found: list[Detections] = []
        waiting: list[FittedPicture] = []
        for number, image in enumerate(each(images)):
            picture, name = to_picture(image, number, self._smallest_side)
            waiting.append(fit_picture(picture, name, self._config.data, self._config.model.multiple))
            if len(waiting) == 4 * self._batch:  # more than a batch, so that pictures of one size find together
                found += self.detect_fitted(waiting)
                waiting = []
        found += self.detect_fitted(waiting)
        return found[0] if is_one(images) else found

    def fit_file(self, path: Path, name: str) -> FittedPicture:
        """Read a file as the network wants it; what cannot be read is a DataError."""
        picture = read_picture(path, smallest_side=self._smallest_side)
        return fit_picture(picture, name, self._config.data, self._config.model.multiple)

    @property
    def _smallest_side(self) -> int:
        """Twice the size leaves the resampling enough to average over, as in training."""
        return 2 * self._config.data.size

    def detect_fitted(self, pictures: Sequence[FittedPicture]) -> list[Detections]:
        """What is in each of the pictures, in their order; those of one size go through the network together."""
        found: list[Detections | None] = [None] * len(pictures)
        for places in self._batches(pictures):
            together = [pictures[place] for place in places]
            for place, detections in zip(places, self._run(together), strict=True):
                found[place] = detections
        return [detections for detections in found if detections is not None]

    def _batches(self, pictures: Sequence[FittedPicture]) -> Iterator[list[int]]:
        sizes: dict[tuple[int, int], list[int]] = {}
        for place, picture in enumerate(pictures):
            sizes.setdefault((picture.frame.height, picture.frame.width), []).append(place)
        for places in sizes.values():
            for start in range(0, len(places), self._batch):
                yield places[start : start + self._batch]

    @torch.no_grad()
    def _run(self, pictures: Sequence[FittedPicture]) -> Iterator[Detections]:
        frame, model = pictures[0].frame, self._config.model
        # More than fit between each other's windows cannot be found anyway.
        room = most_peaks(-(-frame.height // model.stride), -(-frame.width // model.stride), model.map_window)
        pixels = torch.from_numpy(np.stack([picture.pixels for picture in pictures]))  # (B, H, W, 3)
        device = next(self._network.parameters()).device
        images = pixels.permute(0, 3, 1, 2).to(device, torch.float32) / 255
        output = look(self._network, images, min(self._keypoints, room))
        gain = gains(self._network, images, output)  # (B, K)
        output = keep_layers(output, (output.score >= self._min_score) & (gain >= self._min_gain))
        output = whole_things(self._network, images, output)
        for place, picture in enumerate(pictures):
            yield self._in_original(picture, output, gain, place)

    def _in_original(self, picture: FittedPicture, output: Output, gain: Tensor, place: int) -> Detections:
        width, height = picture.original_width, picture.original_height
        xy = picture.frame.placement.to_original(_array(output.xy[place]))  # (K, 2)
        # A point in the bars around the picture is not in the picture. One in the outer half of an edge pixel is, and
        # is moved to its centre, so that every point is inside for whoever looks it up.
        inside = ((xy > -0.5) & (xy < (width - 0.5, height - 0.5))).all(1)
        kept = inside & output.found[place].cpu().numpy()  # (K,)
        score, gained = _array(output.score[place]), _array(gain[place])
        masks = None
        if output.layer_alpha is not None:
            alpha = _array(output.layer_alpha[place, :, 0])  # (K, h, w)
            masks = mask_map(alpha, kept, picture.frame.placement, width, height)
        return Detections(
            source=picture.source,
            width=width,
            height=height,
            xy=np.clip(xy[kept], 0, (width - 1, height - 1)),
            type=output.label[place].cpu().numpy()[kept],
            score=score[kept],
            gain=gained[kept],
            probability=_array(output.probability[place].amax(-1))[kept],
            descriptor=_array(output.descriptors[place])[kept],
            instance=np.flatnonzero(kept),
            mask_map=masks,
        )


def _array(values: Tensor) -> npt.NDArray[np.float64]:
    array: npt.NDArray[np.float64] = values.cpu().double().numpy()
    return array
