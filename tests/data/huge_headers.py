"""Small files whose headers claim billions of pixels, one per format, written byte by byte."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 100_000, height: int = 100_000) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def bmp(width: int = 100_000, height: int = 100_000) -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 1000, 0, 0, 54) + info + bytes(1000)


def gif(width: int = 65_535, height: int = 65_535) -> bytes:
    screen = struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x4c\x01\x00"
    return b"GIF89a" + screen + frame + b";"


def jpeg(width: int = 65_500, height: int = 65_500) -> bytes:
    tables = b"\xff\xdb" + struct.pack(">HB", 67, 0) + bytes([1] * 64)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    scan = b"\xff\xda" + struct.pack(">HB", 8, 1) + b"\x01\x00\x00\x3f\x00" + bytes(100)
    return b"\xff\xd8" + tables + frame + scan + b"\xff\xd9"


def webp(width: int = 1 << 14, height: int = 1 << 14) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + bytes(4) + size + b"VP8 " + struct.pack("<I", 100) + bytes(100)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tiff(width: int = 100_000, height: int = 100_000) -> bytes:
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 200), (277, 1), (278, height), (279, 1000)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    return b"II*\0" + struct.pack("<I", 8) + directory + bytes(1200)


HUGE = {"png": png(), "bmp": bmp(), "gif": gif(), "jpg": jpeg(), "webp": webp(), "tif": tiff()}
