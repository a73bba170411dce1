"""Types with names: merged, split, hidden, taught by clicks, and corrected, as a list of edits beside the model."""

from tusk.naming.apply import apply_naming, apply_to_batch
from tusk.naming.edits import Naming, NamingEdit
from tusk.naming.storage import NamesFile, names_path, open_names
from tusk.naming.types import NamedType, NamedTypes, named_types

__all__ = [
    "NamedType",
    "NamedTypes",
    "NamesFile",
    "Naming",
    "NamingEdit",
    "apply_naming",
    "apply_to_batch",
    "named_types",
    "names_path",
    "open_names",
]
