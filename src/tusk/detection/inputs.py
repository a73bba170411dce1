"""Whatever a program has at hand as a picture: a path, an array, a PIL image or a tensor."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.data.images import Picture, read_picture
from tusk.data.tones import to_eight_bits, to_rgb
from tusk.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

OneImage: TypeAlias = "str | os.PathLike[str] | npt.NDArray[Any] | Image.Image | Tensor"
_SHAPES = "an array is (H, W), (H, W, 3) or (H, W, 4), a tensor (H, W), (1, H, W) or (3, H, W), many have a first axis"


def is_one(images: OneImage | Iterable[OneImage]) -> bool:
    """Whether this is a single picture, and not several."""
    if isinstance(images, np.ndarray) or _is_tensor(images):
        return images.ndim < 4
    return isinstance(images, str | os.PathLike | Image.Image)


def _is_tensor(value: object) -> TypeGuard[Tensor]:
    """Without importing torch, which takes seconds: who has a tensor has it imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def each(images: OneImage | Iterable[OneImage]) -> Iterator[OneImage]:
    """The pictures one by one."""
    if is_one(images):
        yield images  # type: ignore[misc]
    elif isinstance(images, Iterable):
        yield from images
    else:
        raise DataError(type(images).__name__, "it is not a picture", "give a path, an array, a PIL image or a tensor")


def to_picture(image: OneImage, number: int, smallest_side: int | None) -> tuple[Picture, str]:
    """-> the picture and its name; one without a path is called by its number.

    Files are turned the way their EXIF orientation says. A PIL image is taken as it is, so that points are in the
    pixels that the caller sees.
    """
    name = f"image {number}"
    if isinstance(image, str | os.PathLike):
        return read_picture(Path(image), smallest_side=smallest_side), os.fspath(image)
    if isinstance(image, Image.Image):
        pixels = to_rgb(image)
        name = str(getattr(image, "filename", "") or name)
    elif _is_tensor(image):
        values = image.detach().cpu()
        values = values.float() if values.is_floating_point() else values  # numpy knows no bfloat16
        # Tensors have their channels first.
        pixels = _array((values.movedim(0, -1) if values.ndim == 3 else values).numpy(), name, (1, 3))
    elif isinstance(image, np.ndarray):
        pixels = _array(image, name, (1, 3, 4))
    else:
        raise DataError(
            f"{name} ({type(image).__name__})", "it is not a picture", "give a path, an array, a PIL image or a tensor"
        )
    height, width = pixels.shape[:2]
    if not height or not width:
        raise DataError(name, f"it is empty ({width} x {height} pixels)", "give a picture with pixels")
    return Picture(np.ascontiguousarray(pixels), width, height), name


def _array(values: npt.NDArray[Any], name: str, channels: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Bytes, floats in 0..1, deep grey: see `tones.py` for what counts as white."""
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or values.shape[2] not in channels or values.dtype.kind not in "buif":
        raise DataError(name, f"its shape {values.shape} or type {values.dtype} is not a picture's", _SHAPES)
    if values.dtype == np.bool_:
        values = values.astype(np.uint8) * np.uint8(255)
    elif values.dtype != np.uint8:
        values = to_eight_bits(values)
    if values.shape[2] == 4:
        return to_rgb(Image.fromarray(np.ascontiguousarray(values)))
    return np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values
