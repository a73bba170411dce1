"""Pascal VOC: `Annotations/NAME.xml` for every picture; coordinates are of pixels, counted from 1.

VOC knows boxes of whole pixels only: they are widened to those. The point itself, its score and the rest are
attributes, in the form that CVAT gives them in its VOC files.
"""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree.ElementTree import Element

from tusk.detection.records import Instance, Record
from tusk.errors import visible
from tusk.export.found import Found
from tusk.export.places import file_places
from tusk.export.xml import add, write_xml
from tusk.io import atomic_write
from tusk.names import as_text

_ATTRIBUTES = ("instance", "type", "x", "y", "score", "gain", "probability", "size")


def write(found: Found, folder: Path) -> Path:
    places = file_places([picture.image for picture in found.pictures], "")
    lists = folder / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    for picture, place in zip(found.pictures, places, strict=True):
        root = Element("annotation")
        add(root, "folder", "")
        add(root, "filename", picture.image)
        add(add(root, "source"), "database", found.model)
        size = add(root, "size")
        for name, value in (("width", picture.width), ("height", picture.height), ("depth", 3)):
            add(size, name, value)
        add(root, "segmented", 0)
        for one in picture.found:
            _add_object(root, picture, one, found.name(one))
        path = (folder / "Annotations" / place).with_name(f"{place.name}.xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_xml(path, root)
    atomic_write(lists / "default.txt", "".join(f"{place.as_posix()}\n" for place in places).encode())
    names = "".join(f"{visible(as_text(name))}:::\n" for name in found.classes)
    atomic_write(folder / "labelmap.txt", f"# label:color_rgb:parts:actions\n{names}".encode())
    return lists / "default.txt"


def _add_object(root: Element, picture: Record, one: Instance, name: str) -> None:
    element = add(root, "object")
    add(element, "name", name)
    add(element, "pose", "Unspecified")
    for flag in ("truncated", "difficult", "occluded"):
        add(element, flag, 0)
    left, top, width, height = one.box
    box = add(element, "bndbox")
    # The first and the last pixel that the box touches.
    add(box, "xmin", math.floor(left) + 1)
    add(box, "ymin", math.floor(top) + 1)
    add(box, "xmax", max(math.floor(left) + 1, min(picture.width, math.ceil(left + width))))
    add(box, "ymax", max(math.floor(top) + 1, min(picture.height, math.ceil(top + height))))
    attributes = add(element, "attributes")
    for kind in _ATTRIBUTES:
        attribute = add(attributes, "attribute")
        add(attribute, "name", kind)
        add(attribute, "value", getattr(one, kind))
