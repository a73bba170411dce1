"""What a first look at pictures found, drawn: sample pictures with a circle around each thing."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

from tusk.training.preview import Glimpse, Preview

_SHOWN, _ACROSS, _SIDE, _GAP = 6, 3, 420, 6  # pictures, how many in a row, pixels of each, between them
_USUAL, _OTHER = (0, 158, 115), (213, 94, 0)  # circles of about the usual size, and of another
_ALIKE = 1.6  # times the usual size
_DARK = (24, 24, 27)


def preview_png(preview: Preview) -> bytes:
    """A sheet of pictures as the bytes of a PNG. Green circles are of about the usual size, orange ones of another."""
    shown = preview.glimpses[:: max(1, len(preview.glimpses) // _SHOWN)][:_SHOWN]
    pictures = [_drawn(glimpse, preview.thing_size) for glimpse in shown]
    high, rows = max(picture.height for picture in pictures), -(-len(pictures) // _ACROSS)
    sheet = Image.new("RGB", (_ACROSS * (_SIDE + _GAP) + _GAP, rows * (high + _GAP) + _GAP), _DARK)
    for place, picture in enumerate(pictures):
        left = _GAP + place % _ACROSS * (_SIDE + _GAP) + (_SIDE - picture.width) // 2
        top = _GAP + place // _ACROSS * (high + _GAP) + (high - picture.height) // 2
        sheet.paste(picture, (left, top))
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def _drawn(glimpse: Glimpse, usual: float) -> Image.Image:
    picture = Image.fromarray(glimpse.pixels)
    factor = _SIDE / max(picture.size)
    picture = picture.resize((max(1, round(picture.width * factor)), max(1, round(picture.height * factor))))
    draw = ImageDraw.Draw(picture)
    for (x, y), diameter in zip(glimpse.xy - glimpse.corner, glimpse.diameter, strict=True):
        scale = glimpse.scale * factor
        across, down, reach = (x + 0.5) * scale, (y + 0.5) * scale, diameter / 2 * scale
        colour = _USUAL if usual / _ALIKE <= diameter <= usual * _ALIKE else _OTHER
        draw.ellipse((across - reach, down - reach, across + reach, down + reach), outline=colour, width=2)
    return picture
