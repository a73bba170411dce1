"""names.json: where it lies, and how it is read, changed and written by several programs at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError

from tusk.errors import DataError, UsageError
from tusk.io import atomic_write
from tusk.model.storage import StoredModel
from tusk.naming.edits import Naming, NamingEdit
from tusk.naming.types import edited, named_types, redone, undone
from tusk.weights import shipped_models

_MOST_BYTES = 64 << 20
_FIX = "use a file that tusk wrote, or move it away to begin anew"


def names_path(model: Path) -> Path:
    """Beside the model: names.json in a run's folder, MODEL.names.json for any other file.

    Models that come with tusk lie where nothing should be written: theirs is runs/names/MODEL.names.json.
    """
    if model.resolve() in {path.resolve() for path in shipped_models().values()}:
        return Path("runs/names") / f"{model.stem}.names.json"
    return model.with_name("names.json" if model.name == "model.safetensors" else f"{model.stem}.names.json")


def open_names(path: Path, model: StoredModel) -> Naming:
    """The edits on this model's types; none where there is no such file."""
    return _read(path, model.fingerprint(), model.config.model.types)


class NamesFile:
    """The names of one model on the disk. Each change reads the file anew, under a lock."""

    def __init__(self, path: Path, model: StoredModel) -> None:
        self.path = path
        self._model, self._types = model.fingerprint(), model.config.model.types
        self._known: tuple[tuple[int, int] | None, Naming] | None = None
        self.naming()

    def naming(self) -> Naming:
        """As it is on the disk now."""
        stamp = self._stamp()
        if self._known is None or self._known[0] != stamp:
            self._known = stamp, _read(self.path, self._model, self._types)
        return self._known[1]

    def edit(self, make: Callable[[Naming], NamingEdit]) -> Naming:
        """One more edit, which is made from all before it."""
        return self._change(lambda naming: edited(naming, make(naming)))

    def undo(self) -> Naming:
        """Without the last edit."""
        return self._change(undone)

    def redo(self) -> Naming:
        """With the edit that was undone last."""
        return self._change(redone)

    def _change(self, change: Callable[[Naming], Naming]) -> Naming:
        change(self.naming())  # what is refused makes no folder
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=10):
                naming = change(_read(self.path, self._model, self._types))
                atomic_write(self.path, naming.model_dump_json(indent=1).encode() + b"\n")
        except OSError as error:
            why = f"the names cannot be written ({error.strerror or error})"
            raise UsageError(str(self.path), why, "name another file with --names") from error
        self._known = self._stamp(), naming
        return naming

    def _stamp(self) -> tuple[int, int] | None:
        try:
            entry = self.path.stat()
        except OSError:
            return None
        return entry.st_mtime_ns, entry.st_size


def _read(path: Path, model: str, types: int) -> Naming:
    try:
        if not path.exists():
            return Naming(model=model, types=types)
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(str(path), "it is larger than any file of names", _FIX)
        content = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), f"it cannot be read ({error.strerror})", "check the file's permissions") from error
    try:
        naming = Naming.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        raise DataError(str(path), f"it is not a file of names ({where}: {fault['msg']})", _FIX) from error
    if naming.model != model or naming.types != types:
        why = "it names the types of another model"
        raise DataError(str(path), why, "move it away, or use it with the model that it was made for")
    try:
        named_types(naming)
    except UsageError as error:
        raise DataError(str(path), f"its edits do not fit together ({error.what}: {error.why})", _FIX) from error
    return naming
