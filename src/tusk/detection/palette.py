"""Colours of types: told apart by readers with any kind of colour vision, as far as colours can do that."""

from __future__ import annotations

import colorsys

Colour = tuple[int, int, int]

# The seven bright colours of Okabe and Ito (2008), made for readers who are colour-blind, in an order in which the
# first few differ most; then one at a time the colour that is furthest from all before it, for normal vision and for
# simulated deuteranopia and protanopia (Machado, Oliveira and Fernandes, 2009). From about the ninth on, numbers carry
# the difference, not colours.
_CHOSEN: tuple[Colour, ...] = (
    (213, 94, 0), (86, 180, 233), (240, 228, 66), (0, 114, 178), (0, 158, 115), (204, 121, 167), (230, 159, 0),
    (0, 0, 255), (150, 255, 165), (105, 105, 255), (150, 30, 30), (255, 225, 240), (105, 60, 90), (150, 180, 90),
    (90, 30, 180), (105, 150, 255),
)  # fmt: skip


def type_colours(count: int) -> list[Colour]:
    """As many colours; a type keeps its colour however many types there are."""
    colours = list(_CHOSEN[:count])
    for number in range(len(colours), count):
        # Steps of the golden ratio around the hues.
        lightness = 0.62 if number % 2 == 0 else 0.5
        red, green, blue = colorsys.hls_to_rgb((number * 0.618034) % 1, lightness, 0.85)
        colours.append((round(red * 255), round(green * 255), round(blue * 255)))
    return colours


def ink_on(colour: Colour) -> Colour:
    """Black or white, whichever is easier to read on the colour (by WCAG's contrast ratio)."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in colour)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return (0, 0, 0) if (luminance + 0.05) ** 2 > 1.05 * 0.05 else (255, 255, 255)
