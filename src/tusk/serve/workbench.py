"""A model at work in a session: its pictures, what was found in them, and what people say of the types."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from tusk import __version__
from tusk.detection.detections import Detections
from tusk.detection.labels import TypeLabels
from tusk.detection.limits import limit_remarks, limits_of
from tusk.detection.predictor import Predictor
from tusk.detection.records import Record, record_of
from tusk.detection.settings import settings_of
from tusk.errors import UsageError
from tusk.model.storage import StoredModel
from tusk.names import from_text
from tusk.naming import NamedTypes, NamesFile, Naming, apply_naming, named_types
from tusk.naming.assign import assign
from tusk.naming.edits import Added, Correct, Example, NamingEdit, PictureKey, Removed
from tusk.naming.refit import Sample, leave_one_out, sort, split, teach
from tusk.naming.types import words_of
from tusk.report.draw import css
from tusk.report.gallery import decode_alone
from tusk.report.type_tree import read_tree
from tusk.serve.found import Found, FoundPictures, as_png, detect_one
from tusk.serve.pictures import Pictures, ShownPicture

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

_CROPS = 12  # of a type
_HISTORY = 50  # changes that are listed
_LONGEST = 2048  # pixels of a picture on the page


@dataclass(frozen=True)
class Filter:
    """Which points count: the sliders."""

    min_gain: float
    min_score: float = 0.0
    keypoints: int | None = None  # at most, in a picture

    def __call__(self, found: Detections) -> Detections:
        kept = found.filter(min_score=self.min_score, min_gain=self.min_gain)
        if self.keypoints is None or len(kept) <= self.keypoints:
            return kept
        return kept[np.sort(np.argsort(-kept.score, kind="stable")[: self.keypoints])]


class Workbench:
    """Everything that the page and the API ask for. Methods that run the network say so."""

    def __init__(
        self, model: StoredModel, name: str, names: NamesFile, pictures: Pictures, keypoints: int | None = None
    ) -> None:
        self.model, self.name, self.names, self.pictures = model, name, names, pictures
        self.settings = settings_of(model, keypoints)
        self.found = FoundPictures(model, keypoints)
        self._keys: dict[int, PictureKey] = {}
        self._prototypes: dict[tuple[float, ...], bytes] = {}
        self._lock = threading.Lock()

    @property
    def filter(self) -> Filter:
        """Where the sliders stand in the beginning: as in `tusk detect`."""
        return Filter(max(self.settings.min_gain, -1e9), self.settings.min_score)

    @property
    def maker(self) -> str:
        """What found the points, as exports say it."""
        return f"tusk {__version__} {self.model.fingerprint()[:12]}"

    def state(self) -> NamedTypes:
        """The types as they are now."""
        return named_types(self.names.naming())

    def labels(self) -> TypeLabels:
        state = self.state()
        return TypeLabels({number: state[number].title for number in state.visible})

    def detect(self, picture: ShownPicture) -> Found:
        """The network, if it has not seen this picture yet."""
        if picture.number not in self._keys:
            self._keys[picture.number] = picture.key()
        return self.found.detect(picture)

    def detect_once(
        self, picture: ShownPicture, keypoints: int | None, min_score: float | None, min_gain: float | None
    ) -> Record:
        """For programs: the picture is not kept. The network."""
        predictor = Predictor(self.model, keypoints, min_score, min_gain)
        found, _ = detect_one(self.model, predictor, picture)
        named = apply_naming(found, self.names.naming(), sha256=picture.key().sha256, frame=picture.frame)
        return record_of(named, named.box_side)

    def named(self, picture: ShownPicture, found: Detections, keep: Filter) -> Detections:
        """As the page shows it: filtered, named and corrected."""
        key = self._keys.get(picture.number)
        naming = self.names.naming()
        return apply_naming(keep(found), naming, sha256=None if key is None else key.sha256, frame=picture.frame)

    def points(self, picture: ShownPicture, found: Found) -> dict[str, Any]:
        """Every point of a picture for the page, which filters them by its sliders itself."""
        first_added = 1 + int(found.detections.instance.max(initial=-1))
        named = self.named(picture, found.detections, Filter(-np.inf))
        points = [
            {
                "instance": one.instance,
                "x": round(one.x, 2),
                "y": round(one.y, 2),
                "type": one.type,
                "score": round(one.score, 4),
                "gain": round(one.gain, 4),
                "probability": round(one.probability, 4),
                "size": round(one.size, 2),
                "added": one.instance >= first_added,
            }
            for one in named
        ]
        size = found.detections
        remarks = limit_remarks(limits_of(found.detections), self.settings.min_gain)
        return {
            "number": picture.number, "name": picture.name, "width": size.width, "height": size.height,
            "points": points, "masks": found.mask_png is not None, "remarks": remarks,
        }  # fmt: skip

    def picture_bytes(self, picture: ShownPicture, longest: int) -> tuple[bytes, str]:
        """The picture as a browser can show it, upright, and its kind; shrunk where it is larger than wanted."""
        longest = max(16, min(longest, _LONGEST))
        read = picture.read(longest)
        image = Image.fromarray(read.pixels)
        if max(image.size) > longest:
            image.thumbnail((longest, longest))
        if max(image.size) <= 256:
            return as_png(image), "image/png"
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=90)
        return buffer.getvalue(), "image/jpeg"

    def types(self, keep: Filter) -> dict[str, Any]:
        """All types that live, with counts over the pictures that were looked at."""
        naming, state = self.names.naming(), self.state()
        counts, pictures = np.zeros(state.count, np.int64), np.zeros(state.count, np.int64)
        everything = self.found.all()
        for number, found in everything.items():
            picture = self.pictures.get(number)
            if picture is None:
                continue
            own = np.bincount(self.named(picture, found.detections, keep).type, minlength=state.count)
            counts += own
            pictures += own > 0
        crops = self._crops(state)
        colours, version = state.colours, len(naming.edits)
        listed = [
            {
                "number": number, "name": one.name, "title": one.title, "colour": css(colours[number]),
                "hidden": one.hidden, "merged": one.merged, "origin": one.origin, "count": int(counts[number]),
                "pictures": int(pictures[number]), "crops": crops.get(number, []),
                "prototype": f"/api/types/{number}/prototype.png?v={version}",
            }
            for number, one in sorted(state.types.items())
        ]  # fmt: skip
        right = leave_one_out(naming)
        return {
            "types": listed, "looked_at": len(everything), "pictures": len(self.pictures),
            "undo": words_of(naming.edits[-1]) if naming.edits else None,
            "redo": words_of(naming.undone[0]) if naming.undone else None,
            "history": [words_of(edit) for edit in naming.edits[-_HISTORY:]],
            "taught": {"right": right.right, "of": right.of}, "tree": self._tree(),
        }  # fmt: skip

    def sample(self) -> tuple[Sample, list[tuple[int, int]], Naming]:
        """Points with their named types now, and (picture, instance) of each."""
        naming = self.names.naming()
        of_picture: dict[int, Detections] = {}
        rows, types, descriptors = [], [], []
        for number, found in self.found.all().items():
            picture = self.pictures.get(number)
            if picture is None:
                continue
            of_picture[number] = found.detections
            kept = self.filter(found.detections)
            types.append(assign(naming, kept.type, kept.descriptor))
            descriptors.append(kept.descriptor)
            rows += [(number, instance) for instance in kept.instance.tolist()]
        if not rows:
            channels = self.model.config.model.channels
            return Sample(np.zeros(0, np.int64), np.zeros((0, channels))), [], naming
        return Sample(np.concatenate(types), np.concatenate(descriptors)), rows, naming

    def edit(self, edit: NamingEdit) -> None:
        """A name, a colour, a merge, or a type to hide."""
        self.names.edit(lambda _: edit)

    def split(self, number: int) -> int:
        """-> the number of the new type."""
        sample, _, naming = self.sample()
        named_types(naming).find(str(number))
        made = split(naming, sample, number)
        self.names.edit(lambda _: made)
        return made.new

    def teach(self, points: Sequence[tuple[int, int]], number: int | None, name: str) -> int:
        """points: (picture, instance) of those clicked; number: of a type that lives, or None for a new one."""
        sample, _, naming = self.sample()
        state = named_types(naming)
        if number is None and name:
            same = [one.number for one in state.types.values() if one.name.casefold() == name.casefold()]
            number = same[0] if same else None
        target = state.count if number is None else state.find(str(number)) if number in state else number
        if number is not None and number not in state:
            raise UsageError(f"type {number}", "there is no such type", "choose one of the list")
        examples = [self._example(picture, instance) for picture, instance in dict.fromkeys(points)]
        made = teach(naming, sample, target, name if number is None else "", examples)
        self.names.edit(lambda _: made)
        return target

    def sort(self) -> None:
        """All other types into those that are named or clicked."""
        sample, _, naming = self.sample()
        made = sort(naming, sample)
        self.names.edit(lambda _: made)

    def correct(self, number: int, removed: Sequence[int], added: Sequence[Added]) -> None:
        """removed: instances as the page shows them; added: places with types."""
        picture, found = self._known(number)
        shown = self.named(picture, found.detections, Filter(-np.inf))
        rows = {int(instance): place for place, instance in enumerate(shown.instance.tolist())}
        unknown = [instance for instance in removed if instance not in rows]
        if unknown:
            raise UsageError(f"point {unknown[0]}", "there is no such point in the picture", "choose another")
        for one in added:
            if not (-0.5 <= one.x <= shown.width - 0.5 and -0.5 <= one.y <= shown.height - 0.5):
                raise UsageError(f"place {one.x:g}, {one.y:g}", "it lies outside of the picture", "click inside of it")
        places = []
        for instance in removed:
            x, y = shown.xy[rows[instance]].tolist()
            is_added = instance > int(found.detections.instance.max(initial=-1))
            places.append(Removed(x=x, y=y, added=is_added))
        made = Correct(picture=self._keys[number], removed=tuple(places), added=tuple(added))
        self.names.edit(lambda _: made)

    def prototype(self, number: int) -> bytes:
        """What the network takes for the typical thing of a type. The network."""
        sample, _, naming = self.sample()
        state = named_types(naming)
        if number not in state:
            raise UsageError(f"type {number}", "there is no such type", "see the list")
        centre = self._centre(sample, naming, number)
        key = tuple(np.round(centre, 2).tolist())
        if key not in self._prototypes:
            config = self.model.config
            side = int(min(config.data.size, max(24, round(1.5 * config.model.window))))
            network = self.model.network
            device = next(network.parameters()).device
            vector = torch.from_numpy(centre)[None].float().to(device)
            [pixels] = decode_alone(network, vector, 0.5, side, config.data.size)
            if len(self._prototypes) > 500:
                self._prototypes.clear()
            factor = max(1, 96 // side)
            image = Image.fromarray(pixels)
            self._prototypes[key] = as_png(image.resize((side * factor, side * factor), Image.Resampling.NEAREST))
        return self._prototypes[key]

    def records(self, keep: Filter) -> list[Record]:
        """What the page shows, for files to download."""
        records = []
        for number, found in self.found.all().items():
            picture = self.pictures.get(number)
            if picture is not None:
                named = self.named(picture, found.with_masks(), keep)
                record = record_of(named, named.box_side)
                records.append(replace(record, image=from_text(record.image)))
        return records

    def forget(self, number: int) -> None:
        """A picture that was dropped."""
        self.pictures.remove([number])
        if self.pictures.get(number) is None:
            self.found.forget(number)
            self._keys.pop(number, None)

    def crop(self, picture: int, instance: int) -> bytes | None:
        """A point's surroundings; None where they were not kept."""
        points = self.found.points()
        return next((one.crop for one in points if (one.picture, one.instance) == (picture, instance)), None)

    def _known(self, number: int) -> tuple[ShownPicture, Found]:
        picture, found = self.pictures.get(number), self.found.get(number)
        if picture is None or found is None:
            raise UsageError(f"picture {number}", "it was not looked at", "open it first")
        return picture, found

    def _example(self, number: int, instance: int) -> Example:
        picture, found = self._known(number)
        shown = self.named(picture, found.detections, Filter(-np.inf))
        rows = np.flatnonzero(shown.instance == instance)
        raw = np.flatnonzero(found.detections.instance == instance)
        if not len(rows) or not len(raw):
            why = "there is no such point in the picture, or somebody added it"
            raise UsageError(f"point {instance}", why, "choose points that were found")
        x, y = found.detections.xy[raw[0]].tolist()
        vector = tuple(round(float(value), 5) for value in found.detections.descriptor[raw[0]])
        source = int(shown.type[rows[0]])
        return Example(x=x, y=y, picture=self._keys[number], source=source, descriptor=vector)

    def _centre(self, sample: Sample, naming: Naming, number: int) -> FloatArray:
        own = sample.descriptors[sample.types == number]
        if not len(own):
            unit = self.model.network.prototypes.centres().detach().cpu().double().numpy()
            own = unit[assign(naming, np.arange(len(unit)), unit) == number]
        if not len(own):
            own = np.ones((1, self.model.config.model.channels))
        mean = own.mean(0)
        centre: FloatArray = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return centre

    def _crops(self, state: NamedTypes) -> dict[int, list[str]]:
        """By type: where the crops of the points are that lie nearest to the type's mean."""
        kept = {(point.picture, point.instance) for point in self.found.points()}
        sample, rows, _ = self.sample()
        crops = {}
        for number in state.types:
            own = np.flatnonzero(sample.types == number)
            if not len(own):
                continue
            mean = sample.descriptors[own].mean(0)
            near = own[np.argsort(-sample.descriptors[own] @ mean, kind="stable")]
            chosen = [rows[place] for place in near.tolist() if rows[place] in kept][:_CROPS]
            crops[number] = [f"/api/pictures/{picture}/crops/{instance}.png" for picture, instance in chosen]
        return crops

    def _tree(self) -> dict[str, Any] | None:
        """How training merged prototypes to types, where it did."""
        tree = read_tree(self.model.provenance.get("type_tree"), self.model.config.model.prototypes)
        if tree is None:
            return None
        return {"members": tree.members, "merges": [(a, b, round(often, 3)) for a, b, often in tree.joins]}
