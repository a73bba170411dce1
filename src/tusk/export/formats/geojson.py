"""GeoJSON as QuPath reads it: a file for each picture, in its pixels from the top-left corner.

A thing with a mask is its outline, with holes; any other is its point.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from tusk.detection.palette import type_colours
from tusk.detection.records import Instance, Record
from tusk.export.found import Found, mask_of
from tusk.export.outlines import Polygon, Ring, polygons_of
from tusk.export.places import file_places
from tusk.io import atomic_write
from tusk.names import as_text

_NAMESPACE = uuid.UUID("6f1f7a5e-6a0c-5a0b-9f3e-0d1c52a2c7b4")


def write(found: Found, folder: Path) -> Path:
    colours = type_colours(len(found.classes))
    places = file_places([picture.image for picture in found.pictures], ".geojson")
    for picture, place in zip(found.pictures, places, strict=True):
        features = [
            _feature(picture, one, as_text(found.name(one)), colours[found.class_number(one)]) for one in picture.found
        ]
        image = {"name": as_text(picture.image), "width": picture.width, "height": picture.height}
        content = {"type": "FeatureCollection", "features": features, "image": image}
        path = folder / "outlines" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, json.dumps(content, ensure_ascii=False).encode(), flushed=False)
    (folder / "outlines").mkdir(exist_ok=True)
    return folder / "outlines"


def _feature(picture: Record, one: Instance, name: str, colour: tuple[int, int, int]) -> dict[str, Any]:
    place = [round(one.x + 0.5, 2), round(one.y + 0.5, 2)]
    mask = mask_of(picture, one)
    geometry: dict[str, Any] = {"type": "Point", "coordinates": place}
    if mask is not None:
        parts = [_coordinates(polygon) for polygon in polygons_of(mask)]
        one_part = len(parts) == 1
        geometry = {"type": "Polygon" if one_part else "MultiPolygon", "coordinates": parts[0] if one_part else parts}
    values = {kind: getattr(one, kind) for kind in ("score", "gain", "probability", "size", "instance")}
    return {
        "type": "Feature",
        "id": str(uuid.uuid5(_NAMESPACE, f"{one.instance} {as_text(picture.image)}")),
        "geometry": geometry,
        "properties": {
            "objectType": "annotation",
            "classification": {"name": name, "color": list(colour)},
            "measurements": {**values, "x": place[0], "y": place[1]},
        },
    }


def _coordinates(polygon: Polygon) -> list[list[list[int]]]:
    """Closed rings: the first corner comes again at the end. Outlines turn left and holes right, as seen with y upwards
    that is how GeoJSON wants them."""
    return [_closed(ring) for ring in (polygon.outer, *polygon.holes)]


def _closed(ring: Ring) -> list[list[int]]:
    return [[x, y] for x, y in (*ring, ring[0])]
