"""A model at work: pictures in, `Detections` in the pictures' own pixels out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.data.framing import Placement
from tusk.data.images import read_picture
from tusk.data.picture_framing import FittedPicture, Frame, fit_picture
from tusk.detection.detections import Detections
from tusk.detection.gain import gains
from tusk.detection.inputs import OneImage, each, is_one, to_picture
from tusk.detection.masks import mask_map
from tusk.detection.merge import merge_fragments
from tusk.detection.relocate import detect_keypoints
from tusk.detection.tiling import Tile, cut_tiles, in_original, join
from tusk.errors import UsageError
from tusk.model.keypoints import most_peaks
from tusk.model.layers import keep_layers
from tusk.model.network import Output

if TYPE_CHECKING:
    from tusk.model.storage import StoredModel

BATCH = 8
_CROWD = 2.0
_MOST = 65_535  # what a mask map can tell apart


class Predictor:
    """Finds up to `keypoints` things in each picture; those below a score or gain (the model's own) are left out."""

    def __init__(
        self,
        model: StoredModel,
        keypoints: int | None = None,
        min_score: float = 0.0,
        min_gain: float | None = None,
        batch: int = BATCH,
    ) -> None:
        if keypoints is not None and keypoints < 1:
            raise UsageError("keypoints", f"{keypoints} cannot be looked for", "give 1 or more")
        if not 0 <= min_score <= 1:
            raise UsageError("min_score", f"{min_score:g} is no score", "give a number from 0 to 1")
        if min_gain is not None and math.isnan(min_gain):
            raise UsageError("min_gain", "it is not a number", "give one, such as 0 or 2.5")
        if batch < 1:
            raise UsageError("batch", f"{batch} images at once are too few", "give 1 or more")
        self._network = model.network.eval()
        self._config = model.config
        self._keypoints = keypoints
        self._min_score = min_score
        self.min_gain = model.least_gain if min_gain is None else min_gain
        self._batch = batch

    def detect(self, images: OneImage | Iterable[OneImage]) -> Detections | list[Detections]:
        """One picture -> its detections, several -> a list of them."""
        found = list(self.stream(images))
        return found[0] if is_one(images) else found

    def stream(self, images: OneImage | Iterable[OneImage]) -> Iterator[Detections]:
        """The same one by one: only the pictures of a few batches are held in memory."""
        waiting: list[FittedPicture] = []
        for number, image in enumerate(each(images)):
            picture, name = to_picture(image, number, self._smallest_side)
            waiting.append(fit_picture(picture, name, self._config.data, self._config.model.multiple))
            if len(waiting) == 4 * self._batch:  # more than a batch, so that pictures of one size find together
                yield from self.detect_fitted(waiting)
                waiting = []
        yield from self.detect_fitted(waiting)

    def fit_file(self, path: Path, name: str) -> FittedPicture:
        """Read a file as the network wants it; what cannot be read is a DataError."""
        picture = read_picture(path, smallest_side=self._smallest_side)
        return fit_picture(picture, name, self._config.data, self._config.model.multiple)

    @property
    def _smallest_side(self) -> int | None:
        """Twice the size leaves the resampling enough to average over, as in training."""
        return None if self._in_pieces else 2 * self._config.data.size

    @property
    def _apart(self) -> float:
        """What two looks find closer than this is one thing: peaks within half a window of each other are."""
        return self._config.model.window / 2

    @property
    def _in_pieces(self) -> bool:
        return self._config.data.fit == "tiles"

    def detect_fitted(self, pictures: Sequence[FittedPicture]) -> list[Detections]:
        """What is in each of the pictures, in their order; those of one size go through the network together."""
        found = self._detect_fitted(pictures)
        window = self._config.model.window
        return [
            replace(one, box_side=window * max(picture.frame.placement.scale))
            for picture, one in zip(pictures, found, strict=True)
        ]

    def _detect_fitted(self, pictures: Sequence[FittedPicture]) -> list[Detections]:
        if self._in_pieces:
            return [self._by_looks(picture) for picture in pictures]
        found: list[Detections | None] = [None] * len(pictures)
        for places in self._batches(pictures):
            together = [pictures[place] for place in places]
            keypoints = self._keypoints or self._config.model.keypoints
            for place, detections in zip(places, self._run(together, keypoints), strict=True):
                found[place] = detections
        return [detections for detections in found if detections is not None]

    def _by_looks(self, picture: FittedPicture) -> Detections:
        """A picture of any size in squares of training's; K is for each of these, and the picture has in proportion."""
        size, trained = self._config.data.size, self._config.model.keypoints
        height, width = picture.frame.height, picture.frame.width
        tiles = cut_tiles(height, width, size)
        alone = Frame(size, size, Placement(0, 0, size, size, 0, 0, size, size))
        shares = height * width / size**2
        most = min(self._keypoints or math.ceil(trained * shares), _MOST)
        # Things are not spread evenly: a square in a crowd holds more than its share.
        each = math.ceil(_CROWD * max(trained, most / shares))
        found: list[Detections] = []
        for start in range(0, len(tiles), self._batch):
            part = tiles[start : start + self._batch]
            found_in_tiles = [
                FittedPicture(picture.source, size, size, alone, one.of(picture.pixels, size)) for one in part
            ]
            found += self._run(found_in_tiles, each, part)
        joined = join(found, tiles, height, width, self._apart, most)
        return in_original(joined, picture)

    def _batches(self, pictures: Sequence[FittedPicture]) -> Iterator[list[int]]:
        sizes: dict[tuple[int, int], list[int]] = {}
        for place, picture in enumerate(pictures):
            sizes.setdefault((picture.frame.height, picture.frame.width), []).append(place)
        for places in sizes.values():
            for start in range(0, len(places), self._batch):
                yield places[start : start + self._batch]

    @torch.no_grad()
    def _run(
        self, pictures: Sequence[FittedPicture], keypoints: int, tiles: Sequence[Tile] = ()
    ) -> Iterator[Detections]:
        """The pictures have one size; they may be looks at `squares` of a larger one."""
        frame, model = pictures[0].frame, self._config.model
        # More than fit between each other's windows cannot be found anyway.
        room = most_peaks(-(-frame.height // model.stride), -(-frame.width // model.stride), model.map_window)
        pixels = torch.from_numpy(np.stack([picture.pixels for picture in pictures]))  # (B, H, W, 3)
        device = next(self._network.parameters()).device
        images = pixels.permute(0, 3, 1, 2).to(device, torch.float32) / 255
        output = detect_keypoints(self._network, images, min(keypoints, room))
        if tiles and output.layer_alpha is None:
            # What a keypoint is worth takes long to tell, and of many another square will tell it. Masks need them all.
            xy = _array(output.xy)  # (B, K, 2)
            asked = np.stack([one.owns(xy[place], self._apart) for place, one in enumerate(tiles)])
            output = replace(output, found=output.found & torch.from_numpy(asked).to(device))
        gain = gains(self._network, images, output)  # (B, K)
        output = keep_layers(output, (output.score >= self._min_score) & (gain >= self.min_gain))
        output = merge_fragments(self._network, images, output)
        for place, picture in enumerate(pictures):
            yield self._in_original(picture, output, gain, place)

    def _in_original(self, picture: FittedPicture, output: Output, gain: Tensor, place: int) -> Detections:
        width, height = picture.original_width, picture.original_height
        xy, inside = picture.to_original(_array(output.xy[place]))  # (K, 2), (K,)
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
            xy=xy[kept],
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
