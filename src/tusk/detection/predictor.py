"""A model in use: pictures in, `Detections` in the pictures' own pixels out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.config import DetectionConfig
from tusk.data.framing import FittedPicture, Frame, Placement, fit_picture
from tusk.data.images import read_frames, read_picture
from tusk.detection.detections import Detections
from tusk.detection.footprint import detection_bytes
from tusk.detection.inputs import OneImage, each, is_one, to_picture
from tusk.detection.masks import mask_map
from tusk.detection.pipeline import BatchDetections, Owned, detect_batch
from tusk.detection.settings import settings_of
from tusk.detection.tiling import Tile, cut_tiles, in_original, join
from tusk.errors import DataError, UsageError
from tusk.machine_memory import check_fits
from tusk.model.keypoints import most_peaks
from tusk.model.storage import StoredModel

BATCH = 8
_CROWD = 2.0
_LARGEST_TILE = 384
_MOST = 65_535  # instances that a mask map can tell apart


class Predictor:
    """Detects up to `keypoints` objects in each picture; those below a score or gain (the model's own) are left out.

    `detection` takes the place of the model's own `detection.*` settings.
    """

    def __init__(
        self,
        model: StoredModel,
        keypoints: int | None = None,
        min_score: float | None = None,
        min_gain: float | None = None,
        batch: int = BATCH,
        detection: DetectionConfig | None = None,
    ) -> None:
        if batch < 1:
            raise UsageError("batch", f"{batch} images at once are too few", "give 1 or more")
        self.settings = settings_of(model, keypoints, min_score, min_gain, detection)
        self._network = model.network.eval()
        self._config = model.config
        self._keypoints = keypoints  # None: the model's own, for an image of training's size
        self._batch = batch

    @property
    def min_gain(self) -> float:
        """The least gain of a detection."""
        return self.settings.min_gain

    def check_memory(self, pictures: int) -> None:
        """Refuse, before so many pictures are read, what cannot fit in the memory that is free."""
        config, size = self._config, self._config.data.size
        keypoints, images = self.settings.keypoints, min(self._batch, pictures)
        if self._in_tiles:  # one picture may give many
            size = self._largest_tile
            keypoints = math.ceil(_CROWD * self._trained_keypoints(size * size))
            images = self._tiles_at_once(size * size)
        room = self._room(size, size)
        need = detection_bytes(config.model, size, images, min(keypoints, room))
        if images > 1:
            check_fits(need, f"--batch {self._batch}", "give a smaller one")
        else:
            check_fits(need, f"images of {size}x{size} pixels", "end other programs, or give fewer --keypoints")

    def detect(self, images: OneImage | Iterable[OneImage]) -> Detections | list[Detections]:
        """One picture -> its detections, several -> a list of them."""
        found = list(self.stream(images))
        return found[0] if is_one(images) else found

    def stream(self, images: OneImage | Iterable[OneImage]) -> Iterator[Detections]:
        """The same one by one, in their order: only the pictures of a few batches are held in memory."""
        waiting: list[FittedPicture] = []
        for number, image in enumerate(each(images)):
            picture, name = to_picture(image, number, self._smallest_side)
            waiting.append(fit_picture(picture, name, self._config.data, self._config.model.multiple))
            if len(waiting) == 4 * self._batch:  # more than a batch, so that pictures of one size come together
                yield from self.detect_fitted(waiting)
                waiting = []
        yield from self.detect_fitted(waiting)

    def fit_file(
        self, path: Path, names: Sequence[str], frames: Sequence[int | None]
    ) -> list[FittedPicture | DataError]:
        """Read a file as the network wants it, or these frames of it, under these names; or what is wrong with each."""
        data, least = self._config.data, self._config.model.multiple
        numbers = [frame for frame in frames if frame is not None]
        called = dict(zip(numbers, names, strict=False))
        try:
            if numbers:
                return read_frames(path, numbers, lambda frame, one: fit_picture(one, called[frame], data, least))
            return [fit_picture(read_picture(path, smallest_side=self._smallest_side), names[0], data, least)]
        except DataError as error:
            return [error] * len(names)

    @property
    def _smallest_side(self) -> int | None:
        """Twice the size leaves the resampling enough to average over, as in training."""
        return None if self._in_tiles else 2 * self._config.data.size

    @property
    def _apart(self) -> float:
        """What two tiles find closer than this is one object: so are peaks within half a window of each other."""
        sizes = self._config.model.sizes
        return self.settings.window / 2 if sizes is None else sizes[0]

    @property
    def _in_tiles(self) -> bool:
        return self._config.data.fit == "tiles"

    def detect_fitted(self, pictures: Sequence[FittedPicture]) -> list[Detections]:
        """What is in each of the pictures, in their order; those of one size go through the network together."""
        if self._in_tiles:
            return [self._detect_in_tiles(picture, self._tile(picture)) for picture in pictures]
        found: list[Detections | None] = [None] * len(pictures)
        for places in self._batches(pictures):
            together = [pictures[place] for place in places]
            for place, detections in zip(places, self._run(together, self.settings.keypoints), strict=True):
                found[place] = detections
        return [detections for detections in found if detections is not None]

    def _box_side(self, picture: FittedPicture) -> float:
        """Side of the square that is the box of an object without a mask, in the picture's pixels."""
        return self.settings.window * max(picture.frame.placement.scale)

    def _described(self, found: Detections, picture: FittedPicture) -> Detections:
        """With what the picture's scale says about sizes."""
        resolution = self._config.model.stride * max(picture.frame.placement.scale)
        return replace(found, box_side=self._box_side(picture), resolution=resolution)

    def _tile(self, picture: FittedPicture) -> tuple[int, int]:
        """Height and width of its tiles: as in training, or larger where what is found does not depend on that."""
        side, frame = self._largest_tile, picture.frame
        if self._config.model.norm != "channel":
            return side, side
        # Half of a tile is overlap: of larger ones fewer are needed.
        return min(frame.height, side), min(frame.width, side)

    @property
    def _largest_tile(self) -> int:
        size = self._config.data.size
        return max(size, _LARGEST_TILE) if self._config.model.norm == "channel" else size

    def _trained_keypoints(self, area: int) -> int:
        """The model's own number, for so many pixels."""
        return math.ceil(self._config.model.keypoints * area / self._config.data.size**2)

    def _tiles_at_once(self, area: int) -> int:
        """Tiles of so many pixels that take no more memory together than a batch of training's size."""
        return max(1, self._batch * self._config.data.size**2 // area)

    def _detect_in_tiles(self, picture: FittedPicture, size: tuple[int, int]) -> Detections:
        """A picture of any size in tiles; K is for a tile of training's size, and the picture's is in proportion."""
        area = size[0] * size[1]
        trained, at_once = self._trained_keypoints(area), self._tiles_at_once(area)
        height, width = picture.frame.height, picture.frame.width
        tiles = cut_tiles(height, width, size)
        alone = Frame(*size, Placement(0, 0, size[1], size[0], 0, 0, size[1], size[0]))
        shares = height * width / area
        most = min(self._keypoints or math.ceil(trained * shares), _MOST)
        # Objects are not spread evenly: a tile in a crowd holds more than its share.
        each = math.ceil(_CROWD * max(trained, most / shares))
        found: list[Detections] = []
        for start in range(0, len(tiles), at_once):
            part = tiles[start : start + at_once]
            pictures = [
                FittedPicture(picture.source, size[1], size[0], alone, tile.of(picture.pixels, size)) for tile in part
            ]
            found += self._run(pictures, each, self._owned_by(part))
        joined = join(found, tiles, height, width, self._apart, most)
        return self._described(in_original(joined, picture), picture)

    def _owned_by(self, tiles: Sequence[Tile]) -> Owned:
        """Which places each tile answers for: the gains of others' keypoints need not be computed here."""

        def owned(xy: Tensor) -> Tensor:
            places = _array(xy)  # (B, K, 2)
            answers = np.stack([tile.owns(places[number], self._apart) for number, tile in enumerate(tiles)])
            return torch.from_numpy(answers).to(xy.device)

        return owned

    def _batches(self, pictures: Sequence[FittedPicture]) -> Iterator[list[int]]:
        sizes: dict[tuple[int, int], list[int]] = {}
        for place, picture in enumerate(pictures):
            sizes.setdefault((picture.frame.height, picture.frame.width), []).append(place)
        for places in sizes.values():
            for start in range(0, len(places), self._batch):
                yield places[start : start + self._batch]

    def _room(self, height: int, width: int) -> int:
        """How many keypoints fit: more than lie between each other's windows cannot be found anyway."""
        model = self._config.model
        window = model.window_on_map(self.settings.window)
        return most_peaks(-(-height // model.stride), -(-width // model.stride), window)

    def _run(
        self, pictures: Sequence[FittedPicture], keypoints: int, owned: Owned | None = None
    ) -> Iterator[Detections]:
        """The pictures have one size; they may be tiles of a larger one."""
        frame = pictures[0].frame
        room = self._room(frame.height, frame.width)
        settings = replace(self.settings, keypoints=min(keypoints, room))
        together = np.stack([picture.pixels for picture in pictures])  # (B, H, W, 3)
        # As bytes to the device, and numbers there: a quarter of the way between memories.
        images = torch.from_numpy(together).to(self._network.device).permute(0, 3, 1, 2).float() / 255
        detections = detect_batch(self._network, images, settings, owned)
        detections.check_numbers()
        for place, picture in enumerate(pictures):
            found = self._described(_in_original(picture, detections, place), picture)
            # Where there is no room for more, asking for more would change nothing.
            yield replace(found, limit=keypoints, at_limit=bool(detections.full[place]) and keypoints < room)


def _in_original(picture: FittedPicture, found: BatchDetections, place: int) -> Detections:
    """Those of one image of the batch, in the pixels of its picture; points in the bars around it are left out."""
    width, height = picture.original_width, picture.original_height
    xy, inside = picture.to_original(_array(found.xy[place]))  # (K, 2), (K,)
    kept = inside & found.kept[place].cpu().numpy()  # (K,)
    masks = None
    if found.shares is not None:
        masks = mask_map(found.shares[place], kept, picture.frame.placement, width, height)
    return Detections(
        source=picture.source,
        width=width,
        height=height,
        xy=xy[kept],
        type=found.type[place].cpu().numpy()[kept],
        score=_array(found.score[place])[kept],
        gain=_array(found.gain[place])[kept],
        probability=_array(found.probability[place])[kept],
        descriptor=_array(found.descriptors[place])[kept],
        instance=np.flatnonzero(kept),
        mask_map=masks,
        size=None if found.size is None else _array(found.size[place])[kept] * max(picture.frame.placement.scale),
    )


def _array(values: Tensor) -> npt.NDArray[np.float64]:
    array: npt.NDArray[np.float64] = values.cpu().double().numpy()
    return array
