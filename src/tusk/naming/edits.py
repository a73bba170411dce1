"""What people say about types, one edit after the other. The list of edits is all that is stored: whatever follows from
them is computed anew, so that to undo is to take the last one away.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_NAME = 60  # letters
MOST_EDITS = 10_000

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _plain(name: str) -> str:
    """In one line and without what cannot be seen, or turns the direction of the letters around it."""
    if _CONTROL.search(name):
        raise ValueError("a name has letters that cannot be seen (control characters)")
    return " ".join(name.split())


Type = Annotated[int, Field(ge=0, lt=20_000)]
Name = Annotated[str, Field(max_length=MOST_NAME), AfterValidator(_plain)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e9, le=1e9)]
Vector = Annotated[tuple[Number, ...], Field(min_length=1, max_length=1024)]


class Part(BaseModel):
    """Immutable, and nothing in it that is not known: the file may come from anybody."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PictureKey(Part):
    """A picture by its content, so that a correction never lands on another one of the same name."""

    name: Annotated[str, Field(max_length=4096)]  # for people
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    frame: Annotated[int, Field(ge=0)] | None = None


class Place(Part):
    """In pixels of the original picture."""

    x: Number
    y: Number


class Removed(Place):
    added: bool = False  # somebody had added it


class Added(Place):
    type: Type


class Example(Place):
    """A point that somebody clicked."""

    picture: PictureKey | None = None
    source: Type  # the type that it had before
    descriptor: Vector


class Centre(Part):
    type: Type
    descriptor: Vector


class Rename(Part):
    """An empty name takes the name away."""

    edit: Literal["name"] = "name"
    type: Type
    name: Name


class Recolour(Part):
    """None: its own colour again."""

    edit: Literal["colour"] = "colour"
    type: Type
    colour: Annotated[str, Field(pattern="^#[0-9a-f]{6}$")] | None


class Hide(Part):
    """Points of a hidden type are no detections."""

    edit: Literal["hide"] = "hide"
    type: Type
    hidden: bool = True


class Merge(Part):
    """All of `other` becomes `into`."""

    edit: Literal["merge"] = "merge"
    into: Type
    other: Type


class Split(Part):
    """What is nearer to the second centre than to the first becomes the new type."""

    edit: Literal["split"] = "split"
    type: Type
    new: Type
    centres: tuple[Vector, Vector]


class Teach(Part):
    """Clicked points are of this type, and so is what is nearer to its mean than to the rest of the type it was in."""

    edit: Literal["teach"] = "teach"
    type: Type
    name: Name = ""  # of a new type
    examples: Annotated[tuple[Example, ...], Field(min_length=1, max_length=1000)]
    centre: Vector
    rest: tuple[Centre, ...]  # of each type that examples come from: what is not of the taught type


class Kind(Part):
    """A descriptor is of the kind for which its product with the weights, plus the bias, is largest."""

    type: Type
    weights: Vector
    bias: Number


class Sort(Part):
    """There are no kinds but these: points of all other types go to the nearest of them, and those types are gone."""

    edit: Literal["sort"] = "sort"
    kinds: Annotated[tuple[Kind, ...], Field(min_length=2, max_length=1000)]
    others: Annotated[tuple[Type, ...], Field(max_length=20_000)]  # that are gone then
    again: Annotated[tuple[Type, ...], Field(max_length=1000)] = ()  # kinds whose points are sorted, too


class Correct(Part):
    """Points of one picture that are none, and places where one is missing. The picture itself never changes."""

    edit: Literal["correct"] = "correct"
    picture: PictureKey
    removed: Annotated[tuple[Removed, ...], Field(max_length=10_000)] = ()
    added: Annotated[tuple[Added, ...], Field(max_length=10_000)] = ()


NamingEdit = Annotated[Rename | Recolour | Hide | Merge | Split | Teach | Sort | Correct, Field(discriminator="edit")]


class Naming(Part):
    """All edits on a model's types, in order; and those that were undone, the last one first to be done again."""

    format: Literal["tusk-names"] = "tusk-names"
    version: Literal[1] = 1
    model: Annotated[str, Field(max_length=64)]  # the fingerprint of the model whose types they are
    types: Annotated[int, Field(ge=1, le=4096)]  # of the model
    edits: Annotated[tuple[NamingEdit, ...], Field(max_length=MOST_EDITS)] = ()
    undone: Annotated[tuple[NamingEdit, ...], Field(max_length=MOST_EDITS)] = ()

    @property
    def has_corrections(self) -> bool:
        """Whether some pictures have points of their own."""
        return any(isinstance(edit, Correct | Teach) for edit in self.edits)
