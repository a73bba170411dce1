"""XML files: any text in them, and all of a file or nothing."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tusk.io import atomic_write
from tusk.names import as_text

# What XML 1.0 cannot hold in any form, and a carriage return, which readers take for a line end.
_FORBIDDEN = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text with what XML cannot hold as `tusk.names` writes bytes that are no text: `from_text` gives it back."""
    return _FORBIDDEN.sub(_escaped, as_text(text))


def add(above: Element, tag: str, text: object = None, **attributes: object) -> Element:
    """A new element below another one."""
    element = SubElement(above, tag, {name: xml_text(str(value)) for name, value in attributes.items()})
    if text is not None:
        element.text = xml_text(str(text))
    return element


def write_xml(path: Path, root: Element, *, declaration: bool = True) -> None:
    indent(root)
    atomic_write(path, tostring(root, "utf-8", xml_declaration=declaration) + b"\n")


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
