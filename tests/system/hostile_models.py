"""Run by `test_hostile.py`: opens model files that were made to do harm, and detects with those that can be opened.

All in this one process. Prints one line of JSON: what came of each, and the most memory that the process ever had.

Usage: hostile_models.py FOLDER COUNT
"""

import json
import random
import struct
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save

from tests.system.peak import peak_megabytes
from tusk.config import Config
from tusk.detection.predictor import Predictor
from tusk.errors import UserError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, _digest, load_model, save_model

SETTINGS = {"keypoints": 3, "types": 4, "channels": 4, "width": 4, "levels": 2, "window": 5, "decode": "layers"}
CONFIG = Config.model_validate({"model": SETTINGS, "data": {"size": 16}})
ABSURD = [
    0, -1, 1, 2, 7, 2**31, 2**63, 2**64, 10**30, 10**4200, 1e308, -1e308, 1e-308, float("nan"), float("inf"), True,
    None, "", "x", "9" * 5000, "../../etc/passwd", "\x1b[2J\n", [], {}, [[]], [1] * 3000,
    {"a": {"b": []}}, [[0.9995, 3], [1, 5]],
]  # fmt: skip
TEXTS = [
    "", "null", "[]", "{", "[" * 100_000, '{"a":' * 5000, '{"a":' * 20 + "1" + "}" * 20, "\0", "\ud7ff" * 1000, "1e999",
    '{"a":[' + "[]," * 2_600_000 + "[]]}", '{"a":[' + "{}," * 2_600_000 + "{}]}", '{"training":{"prototype_restarts":['
    + "9," * 45_000 + "9]}}", json.dumps({f"k{number}": 0 for number in range(900)}),
]  # fmt: skip


def metadata_of(config, provenance, tensors, **others):
    """With a checksum that is right, as whoever makes such a file can compute it."""
    try:
        sha256 = _digest(tensors, config, provenance)
    except UnicodeError:
        sha256 = "0" * 64
    return {
        "format": "tusk-model",
        "version": "1",
        "config": config,
        "provenance": provenance,
        "sha256": sha256,
        **others,
    }


class Mutations:
    """Each method gives the bytes of one file."""

    def __init__(self, rng, whole, tensors):
        self.rng, self.whole, self.tensors = rng, whole, tensors
        self.length = int.from_bytes(whole[:8], "little")
        self.config = CONFIG.model_dump(mode="json")
        self.turns = Counter()

    def in_turn(self, kind, choices):
        """So that every choice has its turn, whatever the random numbers are."""
        self.turns[kind] += 1
        return choices[self.turns[kind] % len(choices)]

    def kinds(self):
        whole = [self.bytes_of_the_header, self.cut, self.header_length, self.table, self.junk]
        return [
            *whole,
            self.setting,
            self.setting,
            self.text,
            self.provenance,
            self.version,
            self.weights,
            self.weights,
        ]

    def bytes_of_the_header(self):
        changed = bytearray(self.whole)
        for _ in range(self.rng.choice([1, 1, 2, 8, 100])):
            changed[self.rng.randrange(8 + self.length)] = self.rng.randrange(256)
        return bytes(changed)

    def cut(self):
        return self.whole[: self.rng.randrange(len(self.whole))] + b"\0" * self.rng.choice([0, 0, 7])

    def header_length(self):
        length = self.rng.choice([0, 1, 8, self.length - 1, self.length + 1, 2**20, 2**24, 2**31, 2**63, 2**64 - 1])
        return length.to_bytes(8, "little") + self.whole[8:]

    def table(self):
        """The entries of the weights: names, types, shapes, places."""
        header = json.loads(self.whole[8 : 8 + self.length])
        for _ in range(self.rng.choice([1, 1, 3])):
            name = self.rng.choice([name for name in header if name != "__metadata__"])
            change = self.in_turn("table", ["drop", "rename", "dtype", "shape", "places", "absurd", "many", "deep"])
            entry = dict(header.pop(name))
            if change == "dtype":
                entry["dtype"] = self.rng.choice(["F16", "BF16", "F64", "I8", "BOOL", "F8_E4M3", "X", "", None, 3])
            elif change == "shape":
                shapes = [[], [0], [-1], [2**40, 2**40], [1] * 500, "4", [2**62], entry["shape"][::-1]]
                entry["shape"] = self.rng.choice(shapes)
            elif change == "places":
                entry["data_offsets"] = self.rng.choice([[0, 2**63], [8, 4], [-4, 4], [0], [2**62, 2**62 + 4], "x"])
            elif change == "absurd":
                entry[self.rng.choice(["dtype", "shape", "more"])] = self.rng.choice([[], {}, None, "x", 1e300])
            elif change == "many":
                empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
                header |= {f"w{number}": empty for number in range(20_000)}
            elif change == "deep":
                entry["shape"] = json.loads("[" * 400 + "]" * 400)
            if change != "drop":
                header[name + "\n" * 3 if change == "rename" else name] = entry
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + self.whole[8 + self.length :]

    def setting(self):
        """One or a few settings, anywhere in the tree, are absurd."""
        values = json.loads(json.dumps(self.config))
        for _ in range(self.rng.choice([1, 1, 1, 4])):
            part = values[self.rng.choice(["model", "model", "model", "data", "detection", "training", "losses"])]
            if isinstance(part, dict):
                part[self.rng.choice([*part, "unknown", "\n" * 9])] = self.rng.choice(ABSURD)
        if self.rng.random() < 0.1:
            values[self.rng.choice([*values, "other"])] = self.rng.choice(ABSURD)
        return self.sealed(config=json.dumps(values))

    def text(self):
        return self.sealed(**{self.rng.choice(["config", "provenance"]): self.in_turn("text", TEXTS)})

    def provenance(self):
        names = ["command", "seed", "minutes", "steps", "score", "least_gain", "other"]
        return self.sealed(provenance=json.dumps({name: self.rng.choice(ABSURD) for name in self.rng.sample(names, 2)}))

    def version(self):
        versions = ["", "0", "2", "one", "1.0", "-1", "9" * 4000, "9" * 5000, "٣", "²", "1\n", "0x1", "nan"]
        version = self.in_turn("version", versions)
        return self.sealed(**{self.rng.choice(["version", "version", "format", "sha256"]): version})

    def weights(self):
        """Other values, types, shapes and names, with a checksum that is right."""
        tensors = {name: value.clone() for name, value in self.tensors.items()}
        for _ in range(self.rng.choice([1, 1, 1, 1, 5])):
            name = self.rng.choice(list(tensors))
            value = tensors.pop(name)
            choices = [
                {}, {name: value.double()}, {name: value.half()}, {name: value.to(torch.int64)}, {name: value[None]},
                {name: value.flatten()[:0]}, {name: value * torch.nan}, {name: value.sign() * 3e38},
                {name: value * 1e30},
                {name: value * torch.inf}, {name: value * 0}, {name: -value}, {name: value, "more": torch.zeros(2, 2)},
                {name + ".": value}, {name: torch.zeros(300, 300)},
            ]  # fmt: skip
            tensors |= self.in_turn("weights", choices) if value.numel() else {name: value}
        return self.sealed(tensors)

    def junk(self):
        return self.rng.choice([
            b"", b"\0" * 8, b"PK\x03\x04" + self.whole, self.rng.randbytes(500), b"{}" * 99,
            struct.pack("<Q", 2) + b"{}",
            struct.pack("<Q", 100_000) + b"[" * 100_000, struct.pack("<Q", 6) + b'{"a":1',
            struct.pack("<Q", 20 << 20) + (b'{"a":[' + b"[]," * (7 << 20))[: 20 << 20],
        ])  # fmt: skip

    def sealed(self, tensors=None, config=None, provenance="{}", **others):
        tensors = self.tensors if tensors is None else tensors
        config = json.dumps(self.config) if config is None else config
        return save(tensors, metadata_of(config, provenance, tensors, **others))


def outcome(path, picture):
    """-> what came of one file, in words; None where it can be used."""
    try:
        model = load_model(path)
        Predictor(model).detect(picture)
    except UserError as error:
        words = str(error)
        assert "\n" not in words and "\x1b" not in words and 20 < len(words) < 1000, words
        return words.replace(str(path), "FILE")
    return None


if __name__ == "__main__":
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    sys.set_int_max_str_digits(6000)  # to write such numbers; they are read with the usual limit
    good, bad = folder / "good.safetensors", folder / "bad.safetensors"
    save_model(good, StoredModel(seeded_network(CONFIG.model, 0), CONFIG))
    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    assert outcome(good, picture) is None
    mutations = Mutations(random.Random(17), good.read_bytes(), load_file(good))
    kinds = mutations.kinds()
    said: dict[str, int] = {}
    used, slowest = 0, (0.0, "")
    for number in range(count):
        kind = kinds[number % len(kinds)]
        bad.write_bytes(kind())
        sys.set_int_max_str_digits(4300)
        began = time.process_time()
        words = outcome(bad, picture)
        slowest = max(slowest, (time.process_time() - began, f"{number} {kind.__name__}"))
        sys.set_int_max_str_digits(6000)
        used += words is None
        if words is not None:
            said[words] = said.get(words, 0) + 1
    megabytes = peak_megabytes()
    print(json.dumps({"files": count, "used": used, "megabytes": megabytes, "slowest": slowest, "said": said}))
