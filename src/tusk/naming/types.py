"""The types that there are after all edits: their numbers, names, colours, and which of them are hidden."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tusk.detection.palette import Colour, type_colours
from tusk.errors import UsageError, nearest
from tusk.naming.edits import MOST_EDITS, Correct, Hide, Merge, Naming, NamingEdit, Recolour, Rename, Sort, Split, Teach


@dataclass(frozen=True)
class NamedType:
    """A type keeps its number as long as it lives; one that was merged into another is gone."""

    number: int
    name: str = ""
    colour: str | None = None  # #rrggbb, where somebody chose it
    hidden: bool = False
    merged: tuple[int, ...] = ()  # numbers that went into it
    origin: int | None = None  # the type that it was split from, or taken from by clicks

    @property
    def title(self) -> str:
        """For people: the name, or the number where it has none."""
        return self.name or f"type {self.number}"


@dataclass(frozen=True)
class NamedTypes:
    """Those that live, by number."""

    types: dict[int, NamedType]
    count: int  # one more than the largest number that was ever used

    def __getitem__(self, number: int) -> NamedType:
        return self.types[number]

    def __contains__(self, number: int) -> bool:
        return number in self.types

    @property
    def visible(self) -> tuple[int, ...]:
        """Numbers of those that detections may have."""
        return tuple(number for number, one in sorted(self.types.items()) if not one.hidden)

    @property
    def titles(self) -> tuple[str, ...]:
        """For every number that was ever used."""
        return tuple(self.types[n].title if n in self.types else f"type {n}" for n in range(self.count))

    @property
    def colours(self) -> list[Colour]:
        """For every number that was ever used."""
        colours = type_colours(self.count)
        for number, one in self.types.items():
            if one.colour is not None:
                colours[number] = (int(one.colour[1:3], 16), int(one.colour[3:5], 16), int(one.colour[5:], 16))
        return colours

    def find(self, words: str) -> int:
        """A type by its number or name, as people write it."""
        if words.isascii() and words.isdecimal() and len(words) < 6 and int(words) in self.types:
            return int(words)
        same = [number for number, one in self.types.items() if one.name and one.name.casefold() == words.casefold()]
        if same:
            return same[0]
        choices = [str(number) for number in sorted(self.types)] + [one.name for one in self.types.values() if one.name]
        if len(choices) > 30:
            raise UsageError(f"type '{words}'", "there is no such type", "see 'tusk names MODEL list'")
        raise UsageError(f"type '{words}'", "there is no such type", nearest(words, choices))


def named_types(naming: Naming) -> NamedTypes:
    """All edits in order."""
    state = NamedTypes({number: NamedType(number) for number in range(naming.types)}, naming.types)
    for edit in naming.edits:
        state = after(state, edit)
    return state


def after(state: NamedTypes, edit: NamingEdit) -> NamedTypes:
    """The types after one more edit; what it cannot be done to is refused."""
    types, count = dict(state.types), state.count
    for number in _needed(edit):
        if number not in types:
            raise UsageError(f"type {number}", "there is no such type (any more)", "see 'tusk names MODEL list'")
    if isinstance(edit, Rename):
        _check_name(types, edit.name, edit.type)
        types[edit.type] = replace(types[edit.type], name=edit.name)
    elif isinstance(edit, Recolour):
        types[edit.type] = replace(types[edit.type], colour=edit.colour)
    elif isinstance(edit, Hide):
        types[edit.type] = replace(types[edit.type], hidden=edit.hidden)
    elif isinstance(edit, Merge):
        if edit.into == edit.other:
            raise UsageError(f"type {edit.into}", "it cannot be merged with itself", "name two types")
        other, into = types.pop(edit.other), types[edit.into]
        merged = (*into.merged, other.number, *other.merged)
        types[edit.into] = replace(into, name=into.name or other.name, merged=merged)
    elif isinstance(edit, Split):
        if edit.new != count:
            raise UsageError(f"type {edit.new}", f"the next free number is {count}", "use that one")
        types[edit.new] = NamedType(edit.new, origin=edit.type)
        count += 1
    elif isinstance(edit, Sort):
        kinds = {one.type for one in edit.kinds}
        if kinds & set(edit.others) or not set(edit.again) <= kinds:
            raise UsageError("sort", "a type is a kind and none", "name each type once")
        types = {number: one for number, one in types.items() if number not in edit.others}
    elif isinstance(edit, Teach) and edit.type not in types:
        if edit.type != count:
            raise UsageError(f"type {edit.type}", f"the next free number is {count}", "use that one")
        _check_name(types, edit.name, edit.type)
        types[edit.type] = NamedType(edit.type, edit.name, origin=edit.examples[0].source)
        count += 1
    return NamedTypes(types, count)


def edited(naming: Naming, edit: NamingEdit) -> Naming:
    """With one more edit, which is checked first. What was undone is forgotten."""
    if len(naming.edits) >= MOST_EDITS:
        raise UsageError("names", f"there are {MOST_EDITS:,} edits already", "begin anew in another file")
    after(named_types(naming), edit)
    return naming.model_copy(update={"edits": (*naming.edits, edit), "undone": ()})


def undone(naming: Naming) -> Naming:
    """Without the last edit."""
    if not naming.edits:
        raise UsageError("undo", "there is nothing to undo", "name a type first")
    return naming.model_copy(
        update={"edits": naming.edits[:-1], "undone": (naming.edits[-1], *naming.undone)[:MOST_EDITS]}
    )


def redone(naming: Naming) -> Naming:
    """With the edit that was undone last."""
    if not naming.undone:
        raise UsageError("redo", "nothing was undone", "undo something first")
    return naming.model_copy(update={"edits": (*naming.edits, naming.undone[0]), "undone": naming.undone[1:]})


def words_of(edit: NamingEdit) -> str:
    """For people, such as in a list of what was done."""
    if isinstance(edit, Rename):
        return f"type {edit.type} is called '{edit.name}'" if edit.name else f"type {edit.type} has no name"
    if isinstance(edit, Recolour):
        return f"type {edit.type} has the colour {edit.colour or 'of its number'}"
    if isinstance(edit, Hide):
        return f"type {edit.type} is {'hidden' if edit.hidden else 'shown'}"
    if isinstance(edit, Merge):
        return f"type {edit.other} is merged into type {edit.into}"
    if isinstance(edit, Split):
        return f"type {edit.type} is split into types {edit.type} and {edit.new}"
    if isinstance(edit, Teach):
        number = len(edit.examples)
        return f"{number} {'point is' if number == 1 else 'points are'} of {edit.name or f'type {edit.type}'}"
    if isinstance(edit, Sort):
        return f"{len(edit.others)} other types are sorted into {len(edit.kinds)} kinds"
    return f"{edit.picture.name}: {len(edit.removed)} removed, {len(edit.added)} added"


def _needed(edit: NamingEdit) -> tuple[int, ...]:
    """Types that must live for the edit to make sense."""
    if isinstance(edit, Merge):
        return edit.into, edit.other
    if isinstance(edit, Teach):
        return tuple(centre.type for centre in edit.rest)
    if isinstance(edit, Sort):
        return (*(one.type for one in edit.kinds), *edit.others)
    if isinstance(edit, Correct):
        return tuple(added.type for added in edit.added)
    return (edit.type,)


def _check_name(types: dict[int, NamedType], name: str, number: int) -> None:
    """Two types of one name are one type to whoever reads a table."""
    for other in types.values():
        if name and other.number != number and other.name.casefold() == name.casefold():
            fix = "merge the two, or choose another name"
            raise UsageError(f"'{name}'", f"type {other.number} has that name already", fix)
        if name and name.casefold() == f"type {other.number}" and other.number != number:
            raise UsageError(f"'{name}'", "another type is called so by its number", "choose another name")
