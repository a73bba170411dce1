"""The types of a model and what people say of them, for the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from pydantic import ValidationError

from tusk.api.model import Model
from tusk.data.sources import find_files
from tusk.device import CPU, choose_device
from tusk.errors import UsageError
from tusk.model.storage import StoredModel, load_model
from tusk.naming import NamesFile, named_types, names_path
from tusk.naming.assign import assign
from tusk.naming.edits import Hide, Merge, NamingEdit, Recolour, Rename
from tusk.naming.refit import Sample, sort, split, split_of
from tusk.naming.types import NamedType, words_of
from tusk.weights import model_path

_PICTURES = 200  # that a type is split by, at most


def open_names_of(model: str, file: Path | None = None, device: str = "auto") -> Names:
    """The names of a model: those beside it, or in another file; device: where pictures are looked at."""
    place = choose_device(device)
    path = model_path(model)
    return Names(load_model(path), path, file, place)


class Names:
    """What `tusk names` changes: types are given by their numbers or names, as people write them."""

    def __init__(
        self, model: StoredModel, model_file: Path, file: Path | None = None, device: torch.device = CPU
    ) -> None:
        self._model, self._model_file, self._device = model, model_file, device
        self._file = NamesFile(names_path(model_file) if file is None else file, model)
        self.last = ""

    @property
    def path(self) -> Path:
        return self._file.path

    def rename(self, words: str, name: str) -> None:
        self._edit(lambda number: Rename(type=number, name=name), words)

    def recolour(self, words: str, colour: str | None) -> None:
        self._edit(lambda number: Recolour(type=number, colour=colour), words)

    def hide(self, words: str, *, hidden: bool) -> None:
        self._edit(lambda number: Hide(type=number, hidden=hidden), words)

    def merge(self, into: str, other: str) -> None:
        self._edit(lambda first, second: Merge(into=first, other=second), into, other)

    def split(self, words: str, pictures: Sequence[str]) -> None:
        """By what these pictures hold; without any, by the prototypes that training merged to the type."""
        naming = self._file.naming()
        number = named_types(naming).find(words)
        prototypes = self._model.network.prototypes
        if pictures:
            sample = self._sample(pictures)
            edit = split(naming, sample, number)
        else:
            members = np.arange(prototypes.types) if prototypes.members is None else np.array(prototypes.members)
            unit = prototypes.unit().detach().cpu().double().numpy()  # (M, C)
            own = unit[assign(naming, members, unit) == number]
            if len(own) < 2:
                why = "it comes from one prototype, so that pictures must say what is in it"
                raise UsageError(f"split of type {number}", why, f"write 'split {number} PICTURES'")
            edit = split_of(naming, number, own)
        self._file.edit(lambda _: edit)
        self.last = f"Now {words_of(edit)}."

    def sort(self, pictures: Sequence[str]) -> None:
        """All other types into those that are named or clicked, by what these pictures hold."""
        edit = sort(self._file.naming(), self._sample(pictures))
        self._file.edit(lambda _: edit)
        self.last = f"Now {words_of(edit)}."

    def undo(self) -> None:
        before = self._file.naming()
        self._file.undo()
        self.last = f"Undone: {words_of(before.edits[-1])}."

    def redo(self) -> None:
        naming = self._file.redo()
        self.last = f"Done again: {words_of(naming.edits[-1])}."

    def lines(self) -> list[str]:
        """A line for each type."""
        state = named_types(self._file.naming())
        return [_line(state[number]) for number in sorted(state.types)]

    def history(self) -> list[str]:
        """A line for each change."""
        edits = self._file.naming().edits
        return [f"{place}. {words_of(edit)}" for place, edit in enumerate(edits, 1)] or ["Nothing was changed yet."]

    def as_json(self) -> str:
        state = named_types(self._file.naming())
        colours = state.colours
        return json.dumps(
            [
                {
                    "type": number,
                    "name": state[number].name,
                    "colour": "#{:02x}{:02x}{:02x}".format(*colours[number]),
                    "hidden": state[number].hidden,
                    "merged": state[number].merged,
                }
                for number in sorted(state.types)
            ]
        )

    def _edit(self, make: Callable[..., NamingEdit], *words: str) -> None:
        try:
            naming = self._file.edit(lambda now: make(*(named_types(now).find(word) for word in words)))
        except ValidationError as error:
            fault = error.errors()[0]
            raise UsageError(
                f"'{fault['input']}'", fault["msg"].removeprefix("Value error, "), "choose another"
            ) from error
        self.last = f"Now {words_of(naming.edits[-1])}."

    def _sample(self, pictures: Sequence[str]) -> Sample:
        found = find_files(list(pictures))
        model = Model(self._model, self._model_file).to(self._device)
        types, descriptors = [], []
        for one in model.detect_iter(map(str, found.files[:_PICTURES])):
            types.append(one.type)
            descriptors.append(one.descriptor)
        if not types:
            raise UsageError(pictures[0], "there are no pictures", "name some that show things of that type")
        every = np.concatenate(descriptors)
        return Sample(assign(self._file.naming(), np.concatenate(types), every), every)


def _line(one: NamedType) -> str:
    notes = ["hidden"] if one.hidden else []
    notes += [f"with {', '.join(map(str, one.merged))} in it"] if one.merged else []
    notes += [f"from type {one.origin}"] if one.origin is not None else []
    name = one.name or "(no name)"
    return f"{one.number:>4}  {name}{' (' + '; '.join(notes) + ')' if notes else ''}"
