"""Run by `test_hostile.py`: `tusk detect` on pictures whose names were made to do harm, in this one process.

Prints one line of JSON: exit code, how many pictures there were, and the most memory that the process ever had.
Usage: hostile_names.py MODEL FOLDER COUNT
"""

import io
import json
import os
import random
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from tests.system.peak import peak_megabytes
from tusk.cli import main as cli

PIECES = [
    "=", "+", "-", "@", "'", '"', "''", ",", ";", "|", "\t", "\r", "\n", "\r\n", " ", "..", ".", "\\", "\\x41",
    "\\u0041",
    "%00", "$(x)", "`x`", "=cmd|' /C calc'!A0", "\x1b[2J", "\x07", "\x7f", "\u202e", "\u2028", "é", "e\u0301", "图",
    "🦣",
    "\udcff", "\udc80\udcfe", "~", "*", "?", "[x]", "{}", "<b>", "&amp;", "#", ":", "con", "NUL", "null", "nan",
    "1e5", "0",
]  # fmt: skip
ENDINGS = [".png", ".png", ".PNG", ".jpg", ".tif", ""]


def name_of(rng):
    name = "".join(rng.choice(PIECES) for _ in range(rng.choice([1, 2, 3, 6])))
    if rng.random() < 0.1:
        name += rng.choice(["x", "é", "\udcff"]) * 250
    ending = rng.choice(ENDINGS)
    if not ending:
        name = name.replace(".", "_")  # what follows a dot would be an ending that no picture has
    whole = os.fsencode(name)[: 255 - len(ending)] + ending.encode()
    return os.fsdecode(whole).lstrip(".")  # hidden files are passed over


def make_pictures(folder, count, rng):
    """Names that are there twice, or that the file system refuses, are drawn again."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(buffer, "PNG")
    # Overlays of these meet: 'meet' gives meet.png, which is the folder of the other.
    made = [folder / "meet", folder / "meet.png" / "inner.png"]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(buffer.getvalue())
    while len(made) < count:
        place = folder / name_of(rng) if rng.random() < 0.8 else folder / name_of(rng)[:60] / name_of(rng)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                continue
            place.write_bytes(buffer.getvalue())
        except OSError:
            continue
        made.append(place)
    return made


if __name__ == "__main__":
    model, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    source = folder / os.fsdecode(b"=so\nurce \xff")
    make_pictures(source, count, random.Random(11))
    os.chdir(folder)
    code = 0
    try:
        cli.main(["detect", model, str(source), "--masks", "--overlays", "--min-gain", "-1000"])
    except SystemExit as end:
        code = int(end.code or 0)
    megabytes = peak_megabytes()
    print(json.dumps({"code": code, "megabytes": megabytes}))
