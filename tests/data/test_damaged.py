"""Six hundred damaged files of six formats among good ones: no crash, no hang, each that cannot be read listed once."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.data.huge_headers import HUGE
from tusk.data.dataset import UInt8Array
from tusk.data.folder import FolderDataset

FORMATS = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP", "bmp": "BMP", "tif": "TIFF", "gif": "GIF"}
SIZE = 16


@dataclass(frozen=True)
class Damaged:
    data: bytes
    suffix: str
    kind: str  # cut, flipped, hopeless or sound
    whole: bytes = b""  # what a cut file was before


def picture(rng: np.random.Generator) -> UInt8Array:
    """Smooth colours, which compress into a file of many parts, with some noise."""
    y, x = np.mgrid[0:40, 0:50]
    waves = [127 + 90 * np.sin(x / rng.uniform(3, 9) + y / rng.uniform(3, 9)) for _ in range(3)]
    return np.clip(np.dstack(waves) + rng.normal(0, 9, (40, 50, 3)), 0, 255).astype(np.uint8)


def encoded(pixels: UInt8Array, suffix: str, rng: np.random.Generator) -> bytes:
    stream = io.BytesIO()
    options = {"compression": str(rng.choice(["raw", "tiff_lzw", "tiff_deflate", "jpeg"]))} if suffix == "tif" else {}
    Image.fromarray(pixels).save(stream, FORMATS[suffix], **options)
    return stream.getvalue()


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bits turned over, half of the time in the header, where they do the most."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    reach = len(bits) if rng.random() < 0.5 else min(len(bits), 8 * 64)
    bits[rng.integers(0, reach, rng.integers(1, 12))] ^= 1
    return np.packbits(bits).tobytes()


def damage(suffix: str, rng: np.random.Generator) -> list[Damaged]:
    """A hundred files of one format."""
    other = "gif" if suffix == "png" else "png"
    files: list[Damaged] = []
    for _ in range(45):
        data = encoded(picture(rng), suffix, rng)
        files.append(Damaged(data[: rng.integers(1, len(data))], suffix, "cut", data))
        files.append(Damaged(flipped(encoded(picture(rng), suffix, rng), rng), suffix, "flipped"))
    start = encoded(picture(rng), suffix, rng)[:12]
    files += [
        Damaged(b"", suffix, "hopeless"),
        Damaged(bytes(5000), suffix, "hopeless"),
        Damaged(HUGE[suffix], suffix, "hopeless"),
        Damaged(HUGE[suffix], other, "hopeless"),
        Damaged(b"Dear reader, this is a letter.", suffix, "hopeless"),
        Damaged(start + rng.bytes(3000), suffix, "hopeless"),
        Damaged(start, suffix, "hopeless"),
        Damaged(rng.bytes(3000), suffix, "hopeless"),
        Damaged(encoded(picture(rng), suffix, rng), other, "sound"),
        Damaged(encoded(picture(rng), suffix, rng), suffix.upper(), "sound"),
    ]
    return files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


def test_six_hundred_damaged_files(folder: Path) -> None:
    rng = np.random.default_rng(2024)
    kinds: dict[Path, str] = {}
    wholes: dict[Path, bytes] = {}
    (folder / "photos").mkdir()
    for suffix in FORMATS:
        for number, file in enumerate(damage(suffix, rng)):
            path = folder / "photos" / f"{suffix}-{number}.{file.suffix}"
            path.write_bytes(file.data)
            kinds[path], wholes[path] = file.kind, file.whole
    assert len(kinds) == 600
    good = [folder / "photos" / f"good-{i}.png" for i in range(600)]
    for path in good:
        path.write_bytes(encoded(picture(rng)[:20, :20], "png", rng))

    dataset = FolderDataset(folder / "photos", size=SIZE, cache_dir=folder / "cache")

    with dataset.skipped_csv.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    listed = [Path(row["file"]) for row in rows]
    read = [dataset.path(i) for i in range(len(dataset))]
    assert len(listed) == len(set(listed)) == dataset.skipped
    assert sorted(listed + read) == sorted([*kinds, *good])
    assert set(good) <= set(read)
    assert {path for path, kind in kinds.items() if kind == "sound"} <= set(read)
    assert {path for path, kind in kinds.items() if kind == "hopeless"} <= set(listed)
    assert all(len(row["reason"]) > 10 and "Traceback" not in row["reason"] for row in rows)
    # A file that is cut short is refused, unless the cut took nothing that belongs to the picture.
    cut = [path for path, kind in kinds.items() if kind == "cut"]
    assert len(set(cut) & set(listed)) > 0.9 * len(cut)
    for i, path in enumerate(read):
        if wholes.get(path):
            (folder / f"whole-{i}").write_bytes(wholes[path])
            whole = FolderDataset(folder / f"whole-{i}", size=SIZE, cache_dir=folder / "cache")
            assert np.array_equal(dataset.image(i), whole.image(0)), path
