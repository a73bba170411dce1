"""One geometry for training and for use: crop, letterbox, pad, tiles, contrast and grey, with the way back."""

from tusk.data.framing.frame import FittedPicture, Frame, Framing, fit_picture, frame_for, in_three
from tusk.data.framing.framed import Framed, moved_truth
from tusk.data.framing.placement import Placement, Whole, place, place_tiles

__all__ = [
    "FittedPicture",
    "Frame",
    "Framed",
    "Framing",
    "Placement",
    "Whole",
    "fit_picture",
    "frame_for",
    "in_three",
    "moved_truth",
    "place",
    "place_tiles",
]
