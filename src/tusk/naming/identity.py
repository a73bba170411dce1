"""A picture by its content: corrections find it again under any name, and never another one."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tusk.naming.edits import Naming


def checksum_of(path: Path) -> str | None:
    """Of the file's bytes; None where it cannot be read (whoever decodes it says so)."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def checksum_of_naming(naming: Naming) -> str:
    """Over the edits that hold: what was undone changes no result."""
    return hashlib.sha256(naming.model_copy(update={"undone": ()}).model_dump_json().encode()).hexdigest()
