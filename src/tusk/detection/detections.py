"""The one result type: what was found in one picture, in that picture's own pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from tusk.errors import UserError

if TYPE_CHECKING:
    import pandas
    import supervision
    from PIL import Image

    from tusk.detection.inputs import OneImage

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
UInt16Array = npt.NDArray[np.uint16]
Which = slice | list[int] | list[bool] | npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]]

COLUMNS = ("image", "instance", "type", "x", "y", "score", "gain", "probability", "size")


@dataclass(frozen=True, eq=False)
class Detection:
    """One found thing."""

    instance: int
    x: float
    y: float
    type: int
    score: float
    gain: float
    probability: float
    descriptor: FloatArray  # (C,)
    mask: BoolArray | None  # (H, W)
    size: float = 1.0  # diameter in pixels, as far as the model knows it: see `Detections.size`


@dataclass(frozen=True, eq=False)
class Detections:
    """N found things in one picture, best score first.

    Points are (x, y) in pixels of the original picture, turned as its EXIF data says; (0, 0) is the centre of its
    top-left pixel. `d[0]` is one `Detection`; `d[2:5]`, `d[[0, 3]]` and `d[d.score > 0.5]` are `Detections`.
    """

    source: str  # the picture's name
    width: int
    height: int
    xy: FloatArray  # (N, 2)
    type: Int64Array  # (N,)
    score: FloatArray  # (N,) in 0..1, relative within the picture
    gain: FloatArray  # (N,) by how much the reconstruction error grows without it: see `gain.py`
    probability: FloatArray  # (N,) of the type
    descriptor: FloatArray  # (N, C) of length 1
    instance: Int64Array  # (N,) its number in the picture, which it keeps when others are filtered out
    mask_map: UInt16Array | None = None  # (H, W): 0 for the background, else 1 + the instance of that pixel
    size: FloatArray | None = (
        None  # (N,) diameter in pixels; None where the model learns no sizes: then it is `box_side`
    )
    box_side: float = 1.0  # side in pixels of the square that is the box of a detection without a mask
    limit: int | None = None  # at most how many there could be in this picture
    at_limit: bool = False  # every one of those was used: there may be more things in the picture
    tiled: bool = False  # found in tiles; a tile that used all of its keypoints is at the limit, too
    resolution: float = 1.0  # pixels of the picture in one of the network's feature map
    names: tuple[str, ...] | None = None  # of each type by its number, where people have named them: see `naming/`

    @property
    def mask(self) -> BoolArray | None:
        """(N, H, W): the pixels of each; None where the model has no layers. Made at every call."""
        if self.mask_map is None:
            return None
        return np.asarray(self.mask_map == (self.instance + 1)[:, None, None])

    def __len__(self) -> int:
        return len(self.xy)

    def __iter__(self) -> Iterator[Detection]:
        return (self[place] for place in range(len(self)))

    @overload
    def __getitem__(self, which: int) -> Detection: ...
    @overload
    def __getitem__(self, which: Which) -> Detections: ...
    def __getitem__(self, which: int | Which) -> Detection | Detections:
        if isinstance(which, int | np.integer):
            return self._one(int(which))
        if not isinstance(which, slice):
            which = np.asarray(which) if len(which) else np.zeros(0, np.int64)
        return replace(
            self,
            xy=self.xy[which],
            type=self.type[which],
            score=self.score[which],
            gain=self.gain[which],
            probability=self.probability[which],
            descriptor=self.descriptor[which],
            instance=self.instance[which],
            size=None if self.size is None else self.size[which],
        )

    def _one(self, place: int) -> Detection:
        instance = int(self.instance[place])
        return Detection(
            instance=instance,
            x=float(self.xy[place, 0]),
            y=float(self.xy[place, 1]),
            type=int(self.type[place]),
            score=float(self.score[place]),
            gain=float(self.gain[place]),
            probability=float(self.probability[place]),
            descriptor=self.descriptor[place],
            mask=None if self.mask_map is None else np.asarray(self.mask_map == instance + 1),
            size=self.box_side if self.size is None else float(self.size[place]),
        )

    def filter(
        self,
        min_score: float | None = None,
        min_gain: float | None = None,
        types: list[int] | tuple[int, ...] | set[int] | None = None,
    ) -> Detections:
        """Those of at least this score and gain, and of one of these types."""
        kept = np.ones(len(self), np.bool_)
        if min_score is not None:
            kept &= self.score >= min_score
        if min_gain is not None:
            kept &= self.gain >= min_gain
        if types is not None:
            kept &= np.isin(self.type, list(types))
        return self[kept]

    def rows(self) -> list[dict[str, str | int | float]]:
        """A row for each, with the columns of `detections.csv`; with the name of its type where there are names."""
        values = ((self.source, one.instance, one.type, *_numbers(one)) for one in self._without_masks())
        rows: list[dict[str, str | int | float]] = [dict(zip(COLUMNS, row, strict=True)) for row in values]
        if self.names is not None:
            for row, number in zip(rows, self.type.tolist(), strict=True):
                row["name"] = self.names[number]
        return rows

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a table; needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise UserError("to_pandas", "pandas is not installed", "run 'pip install pandas'") from error
        return pandas.DataFrame(self.rows(), columns=[*COLUMNS, *(() if self.names is None else ("name",))])

    def to_coco(self, image_id: int = 1, types: int | None = None) -> dict[str, Any]:
        """This picture in COCO's format: the annotations that `tusk detect` writes to coco.json.

        types: how many categories to list; by default as many as the largest type needs.
        """
        from tusk.detection.coco import coco_of
        from tusk.detection.records import record_of

        number = types or max(1 + int(self.type.max(initial=-1)), len(self.names or ()))
        return coco_of(record_of(self, self.box_side), image_id, number, self.names)

    def to_supervision(self) -> supervision.Detections:
        """The same as `supervision.Detections`: boxes of the masks, or squares around the points; needs supervision."""
        try:
            import supervision
        except ImportError as error:
            raise UserError(
                "to_supervision", "supervision is not installed", "run 'pip install supervision'"
            ) from error
        from tusk.detection.records import record_of

        boxes = np.array([one.box for one in record_of(self, self.box_side).found], np.float64).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]  # left, top, right, bottom
        return supervision.Detections(
            xyxy=boxes,
            mask=self.mask,
            class_id=self.type,
            confidence=self.score,
            data={"gain": self.gain, "probability": self.probability, "xy": self.xy},
        )

    def plot(self, image: OneImage) -> Image.Image:
        """The picture with a dot and the type's number for each, the count in a corner, and masks tinted.

        Dots and numbers grow with the picture. A small one is enlarged by a whole factor, so that numbers can be read;
        one of more than 4,096 pixels across is shrunk.
        """
        from tusk.detection.draw import draw_detections

        return draw_detections(image, self)

    def _without_masks(self) -> Iterator[Detection]:
        """A mask for each would be made only to be thrown away."""
        return iter(replace(self, mask_map=None))


def _numbers(one: Detection) -> tuple[float, float, float, float, float, float]:
    return one.x, one.y, one.score, one.gain, one.probability, one.size
