"""Names of files, which may hold anything: as text, as cells of a table, and as names of other files.

A name need not be Unicode, may have line ends and quotes in it, or begin like a formula. Two rules make it safe, and
`from_cell` and `from_text` undo them:

- A byte that is not UTF-8 is written as \\xNN (and text that looks like that, \\x41, as \\x5cx41).
- In a table, a text that begins with = + - @ or ' gets a ' before it: spreadsheets then show it, and compute nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

_LOOKS_ESCAPED = re.compile(r"\\(?=x[0-9a-f]{2}|u[0-9a-f]{4})")
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4}))")
_SURROGATE = re.compile("[\ud800-\udfff]")
# What spreadsheets take for a formula, also in full width, and what they skip before they look for one.
_FORMULA = re.compile("[=+\\-@'\t\r\n\x00 ＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_NEEDS_QUOTES = re.compile('[",;|\x00-\x1f\x7f\x85\u2028\u2029]|^ | $')
_LONGEST = 255  # bytes of a file name


def as_text(name: str) -> str:
    """The name as valid Unicode; most names are, and stay as they are."""
    return _SURROGATE.sub(_escape, _LOOKS_ESCAPED.sub(r"\\x5c", name))


def from_text(text: str) -> str:
    """The name that `as_text` was given."""
    return _ESCAPED.sub(_unescape, text)


def _escape(found: re.Match[str]) -> str:
    # Python keeps a byte that is not UTF-8 as a surrogate between DC80 and DCFF; Windows may have others in names.
    code = ord(found[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _unescape(found: re.Match[str]) -> str:
    if found[2] is not None:
        return chr(int(found[2], 16))
    code = int(found[1], 16)
    return chr(code if code < 0x80 else 0xDC00 + code)


def csv_line(cells: Iterable[str]) -> bytes:
    """One row of a table; numbers stay numbers."""
    return (",".join(map(_cell, cells)) + "\n").encode()


def _cell(value: str) -> str:
    text = as_text(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    # Other separators count too: a spreadsheet may be set to them, and must not begin a new cell inside of a name.
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def from_cell(text: str) -> str:
    """The text that `csv_line` was given, from a cell that a CSV reader gave."""
    return from_text(text.removeprefix("'"))


def short_name(name: str, most: int = _LONGEST) -> str:
    """The name in at most so many bytes; a longer one is cut, and told from others by a checksum."""
    whole = os.fsencode(name)
    return name if len(whole) <= most else f"{_cut(whole, most - 9)}~{_checksum(name)}"


def path_inside(label: str, ending: str) -> Path:
    """A relative path for what is made from the picture of this label: never out of a folder, and never too long.

    The whole name with its ending, so that a.png and a.jpg do not meet. A label that leads out of its source (.., or an
    absolute path) gets a checksum, so that it does not meet one that lies there.
    """
    path = Path(label)
    pieces = path.parts[1:] if path.anchor else path.parts
    folders = [short_name("_" if piece == ".." else piece) for piece in pieces[:-1]]
    name = pieces[-1] if pieces else "_"
    if path.anchor or ".." in pieces:
        name = f"{name}~{_checksum(label)}"
    return Path(*folders, short_name(name, _LONGEST - len(ending)) + ending)


def _cut(whole: bytes, most: int) -> str:
    """The first bytes of a name, without half a character at the end."""
    while most and (whole[most] & 0xC0) == 0x80:
        most -= 1
    return os.fsdecode(whole[:most])


def _checksum(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:8]


_URL = re.compile(r"([a-z][a-z0-9+.-]+):[/\\]{1,2}(?![/\\])(.+)")


def as_url(text: str) -> str | None:
    """The URL that a text is, also where it went through a `Path`, which makes one slash of two; None for a path."""
    found = _URL.fullmatch(text)
    return None if found is None else f"{found[1]}://{found[2].replace(chr(92), '/')}"
