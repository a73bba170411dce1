"""What types are called in tables: by their numbers, or as people have named them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TypeLabels:
    """The types that detections may have, in order; numbers that are not among them are not in use any more."""

    titles: dict[int, str]  # by number: the name, or "type 3"

    @property
    def columns(self) -> dict[int, str]:
        """Names of columns: as the type is called, or type_3; no two are the same."""
        taken = {"image", "total"}
        columns = {}
        for number, title in self.titles.items():
            plain = f"type_{number}"
            columns[number] = plain if title == f"type {number}" or title in taken else title
            taken.add(columns[number])
        return columns
