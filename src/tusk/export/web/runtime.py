"""The files of onnxruntime-web: one version, each file checked against its digest, wherever it comes from."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tusk.errors import DataError, UserError

VERSION = "1.30.0"
FILES = {  # name in the package's dist -> SHA-256
    "ort.wasm.min.js": "faece07e84faa9001f5104bbe4e5c70861d06cb2376a0dea1fa0ad33a67adc81",
    "ort-wasm-simd-threaded.mjs": "e13f7f94fc51b4ca72b12faeb1ee95f4ace6dfbc8939bc718aabdc0a27c4299b",
    "ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
_LARGEST = 64 << 20  # bytes of a file
_LOCAL = f"give --runtime with onnxruntime-web {VERSION}, its .tgz or its folder"


def read_runtime(source: Path | None) -> dict[str, bytes]:
    """Name -> content, from a package or folder on this machine; None: npm fetches it from its registry."""
    if source is not None:
        return _checked(source, _read(source))
    npm = shutil.which("npm")
    if npm is None:
        raise UserError("tusk export --to web", "npm, which fetches onnxruntime-web, is not installed", _LOCAL)
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"onnxruntime-web@{VERSION}", "--silent", "--ignore-scripts"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=600)
        except (subprocess.SubprocessError, OSError) as error:
            raise UserError(f"onnxruntime-web {VERSION}", "npm could not fetch it", _LOCAL) from error
        package = next(Path(folder).glob("*.tgz"), None)
        if package is None:
            raise UserError(f"onnxruntime-web {VERSION}", "npm fetched nothing", _LOCAL)
        return _checked(package, _read(package))


def _read(source: Path) -> dict[str, bytes]:
    try:
        if source.is_dir():
            places = [source, source / "dist", source / "package" / "dist"]
            home = next((place for place in places if all((place / name).is_file() for name in FILES)), source)
            return {name: (home / name).read_bytes() for name in FILES}
        read = {}
        with tarfile.open(source) as package:
            for name in FILES:
                member = package.getmember(f"package/dist/{name}")
                opened = package.extractfile(member) if member.isfile() and member.size <= _LARGEST else None
                if opened is None:
                    raise KeyError(name)
                read[name] = opened.read()
        return read
    except (OSError, KeyError, tarfile.TarError, EOFError) as error:
        raise DataError(str(source), f"it does not hold onnxruntime-web ({type(error).__name__})", _LOCAL) from error


def _checked(source: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != FILES[name]:
            raise DataError(f"{source}: {name}", f"it is not that of onnxruntime-web {VERSION}", _LOCAL)
    return files
