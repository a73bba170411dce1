from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.data.dataset import Dataset, Float32Array
from tusk.data.datasets import faces
from tusk.data.datasets.faces import Faces
from tusk.data.synthetic.faces.body import Place
from tusk.data.synthetic.faces.drawing import draw_person, measure
from tusk.data.synthetic.faces.person import BEARDS, COLLARS, GLASSES, HAIR_STYLES, Person, Pose, sample_person
from tusk.data.synthetic.faces.shape import Rotation, head_volume, landmarks
from tusk.data.synthetic.faces.trace import Light, trace
from tusk.errors import UsageError

SEEDS = st.integers(0, 10_000)
POSES = st.builds(Pose, st.floats(-0.45, 0.45), st.floats(-0.3, 0.3), st.floats(-0.5, 0.5))
EVEN_LIGHT = Light((0.0, 0.0, 1.0), (0.1, 0.1, 0.1), (0.9, 0.9, 0.9))
SIZE = 240


def plain(seed: int, pose: Pose) -> Person:
    """Somebody whose features nothing hides, in colours that are easy to find."""
    return replace(
        sample_person(np.random.default_rng(seed)),
        pose=pose,
        hair_style="bald",
        beard="none",
        glasses="none",
        skin=(230.0, 200.0, 180.0),
        blush=0.0,
        iris=(0.0, 0.0, 0.0),
        gaze=(0.0, 0.0),
        eye_open=0.7,
        smile=0.0,
        mouth_open=0.0,
        lip=(0.0, 40.0, 250.0),
        clothes=(120.0, 90.0, 60.0),
        shirt=(120.0, 90.0, 60.0),
    )


def drawn(person: Person) -> tuple[Float32Array, Float32Array, Place]:
    """A large picture of the person, and its landmarks in pixels."""
    place = Place(SIZE / 2, SIZE / 2, 80.0)
    picture = np.full((SIZE, SIZE, 3), 120, np.float32)
    draw_person(picture, person, place, EVEN_LIGHT, np.random.default_rng(0))
    points = measure(person).points * np.float32(place.unit) + np.float32(SIZE / 2)
    return picture, points, place


def middle_of(weight: Float32Array) -> tuple[float, float]:
    rows, columns = np.mgrid[: weight.shape[0], : weight.shape[1]]
    return float((weight * columns).sum() / weight.sum()), float((weight * rows).sum() / weight.sum())


def test_is_a_dataset() -> None:
    data = Faces(count=3)
    assert isinstance(data, Dataset)
    assert len(data) == 3 and data.name == "faces"
    image, truth = data.image(0), data.truth(0)
    assert image.shape == (80, 80, 3) and image.dtype == np.uint8
    assert truth.points is not None and truth.points.shape == (5, 2) and truth.points.dtype == np.float32
    assert truth.boxes is not None and truth.boxes.shape == (1, 4) and truth.boxes.dtype == np.float32
    assert truth.classes is not None and truth.classes.tolist() == [0, 1, 2, 3, 4]
    assert data.class_names == ("left eye", "right eye", "nose", "left mouth corner", "right mouth corner")
    assert Faces(count=1, size=112).image(0).shape == (112, 112, 3)


def test_same_bytes_in_any_order() -> None:
    data = Faces(count=50, seed=5, faces=(1, 3))
    forwards = [data.image(i).tobytes() for i in range(6)]
    again = Faces(count=9, seed=5, faces=(1, 3))
    assert [again.image(i).tobytes() for i in (5, 0, 3, 3)] == [forwards[i] for i in (5, 0, 3, 3)]
    assert len(set(forwards)) == 6
    for other in (Faces(count=50, seed=6, faces=(1, 3)), Faces("test", count=50, seed=5, faces=(1, 3))):
        assert other.image(0).tobytes() != forwards[0]
    first, second = data.truth(4).points, again.truth(4).points
    assert first is not None and second is not None and first.tobytes() == second.tobytes()


@settings(max_examples=25, deadline=None)
@given(SEEDS, POSES)
def test_eyes_are_drawn_at_their_landmarks(seed: int, pose: Pose) -> None:
    picture, points, place = drawn(plain(seed, pose))
    for x, y in points[:2]:
        reach = round(0.09 * place.unit)
        left, top = round(float(x)) - reach, round(float(y)) - reach
        around = picture[top : top + 2 * reach + 1, left : left + 2 * reach + 1].sum(axis=2)
        dark = np.clip(150 - around, 0, None)  # the iris is black
        assert dark.sum() > 0
        column, row = middle_of(dark)
        assert abs(left + column - x) < 0.025 * place.unit and abs(top + row - y) < 0.03 * place.unit
        cheek = picture[round(float(y)) + round(0.3 * place.unit), round(float(x))]
        assert cheek.sum() > 2 * picture[round(float(y)), round(float(x))].sum()


@settings(max_examples=25, deadline=None)
@given(SEEDS, POSES)
def test_mouth_ends_at_its_landmarks(seed: int, pose: Pose) -> None:
    picture, points, place = drawn(plain(seed, pose))
    rows, columns = np.nonzero(picture[:, :, 2] - picture[:, :, 0] > 40)  # the lips are blue
    along = points[4] - points[3]
    along = along / np.hypot(*along)
    # Where the blue begins and ends, measured along the line between the two corners.
    share = (columns - points[3, 0]) * along[0] + (rows - points[3, 1]) * along[1]
    width = float(np.hypot(*(points[4] - points[3])))
    assert -0.03 * place.unit < share.min() < 0.05 * place.unit
    assert -0.05 * place.unit < share.max() - width < 0.03 * place.unit


@settings(max_examples=40, deadline=None)
@given(SEEDS, POSES)
def test_rays_meet_the_head_at_its_landmarks(seed: int, pose: Pose) -> None:
    person = plain(seed, pose)
    rotation, places = Rotation.of(pose), landmarks(person)
    seen = rotation.project(places)
    hits = trace(head_volume(person), rotation, seen[:, 0], seen[:, 1], steps=40)
    found = np.full((5, 3), np.nan)
    found[hits.ray] = np.stack([hits.x, hits.y, hits.z], axis=1)
    # The nose is never hidden; a turned head may hide the far eye or mouth corner behind it.
    assert np.abs(found[2] - places[2]).max() < 0.04
    if abs(pose.yaw) < 0.3:
        assert np.abs(found - places).max() < 0.05


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_box_is_that_of_the_head(seed: int) -> None:
    person = sample_person(np.random.default_rng(seed))
    step = 0.02
    at = np.arange(-1.6, 1.6, step, dtype=np.float32)
    right, down = (axis.ravel() for axis in np.meshgrid(at, at))
    hits = trace(head_volume(person), Rotation.of(person.pose), right, down, steps=40)
    seen = (right[hits.ray].min(), down[hits.ray].min(), right[hits.ray].max(), down[hits.ray].max())
    assert np.abs(np.array(seen) - measure(person).box).max() < 0.04


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(["train", "test"]), st.sampled_from([40, 80, 112]))
def test_a_single_face_fills_the_image(seed: int, split: str, size: int) -> None:
    data = Faces(split, count=1, seed=seed, size=size)
    truth, person = data.truth(0), data.people(0)[0].person
    assert truth.points is not None and truth.boxes is not None
    left, top, right, bottom = truth.boxes[0]
    assert -0.51 <= left < right <= size - 0.49 and -0.51 <= top < bottom <= size - 0.49
    assert (right - left) * (bottom - top) >= 0.3 * size * size
    x, y = truth.points.T
    assert (x >= left).all() and (x <= right).all() and (y >= top).all() and (y <= bottom).all()
    if abs(person.pose.roll) < 0.4:
        assert x[0] < x[1] and x[3] < x[4] and max(y[0], y[1]) < min(y[3], y[4])


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 3), st.integers(0, 3))
def test_several_faces_do_not_touch(seed: int, fewest: int, more: int) -> None:
    data = Faces(count=1, seed=seed, faces=(fewest, fewest + more))
    truth = data.truth(0)
    assert truth.points is not None and truth.boxes is not None and truth.classes is not None
    number = len(truth.boxes)
    assert fewest <= number <= fewest + more
    assert truth.points.shape == (5 * number, 2) and truth.classes.tolist() == list(range(5)) * number
    for i, box in enumerate(truth.boxes):
        mine = truth.points[5 * i : 5 * i + 5]
        assert (mine >= box[:2]).all() and (mine <= box[2:]).all()
        for other in truth.boxes[:i]:
            assert box[0] > other[2] or other[0] > box[2] or box[1] > other[3] or other[1] > box[3]
    assert (np.diff(truth.boxes[:, 0]) >= 0).all()


def test_nobody_hides_another_face(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[Float32Array, Float32Array, Float32Array]] = []

    def draw(picture: Float32Array, person: Person, place: Place, light: Light, rng: np.random.Generator) -> None:
        draw_person(picture, person, place, light, rng)
        left, top, right, bottom = measure(person).box
        across, along = np.meshgrid(np.linspace(0.15, 0.85, 8), np.linspace(0.1, 0.97, 14))
        inside = [left + (right - left) * across.ravel(), top + (bottom - top) * along.ravel()]
        points = np.concatenate([measure(person).points, np.stack(inside, axis=1)])
        points = points * place.unit + [place.x, place.y]
        shown.append((picture, points, colours_at(picture, points)))

    monkeypatch.setattr(faces, "draw_person", draw)
    data = Faces(count=20, seed=2, faces=(3, 5))
    for index in range(len(data)):
        shown.clear()
        data.image(index)
        assert len(shown) == len(data.people(index))
        # What was drawn later has left these places as they were.
        for picture, points, colours in shown:
            assert colours_at(picture, points).tolist() == colours.tolist()


def colours_at(picture: Float32Array, points: Float32Array) -> Float32Array:
    columns, rows = np.rint(points.T).astype(int)
    return picture[rows, columns].copy()


def test_people_differ_as_people_do() -> None:
    data = Faces(count=700, seed=1)
    people = [data.people(i)[0] for i in range(700)]
    persons = [one.person for one in people]
    for expected, seen in (
        (HAIR_STYLES, [person.hair_style for person in persons]),
        (BEARDS, [person.beard for person in persons]),
        (GLASSES, [person.glasses for person in persons]),
        (COLLARS, [person.collar for person in persons]),
    ):
        assert min(seen.count(name) for name in expected) >= 7
    poses = np.array([(person.pose.yaw, person.pose.pitch, person.pose.roll) for person in persons])
    assert (np.abs(poses.mean(axis=0)) < 0.04).all()
    assert (poses.std(axis=0) > [0.2, 0.09, 0.1]).all() and (np.abs(poses).max(axis=0) > [0.6, 0.3, 0.35]).all()
    boxes = np.stack([one.box for one in people])
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) / 6400
    assert area.min() < 0.34 and area.max() > 0.55
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    assert (middles.std(axis=0) > [3, 1.2]).all()
    skins = np.array([sum(person.skin) for person in persons])
    assert np.percentile(skins, 95) - np.percentile(skins, 5) > 250
    assert 0.2 < np.mean([person.mouth_open > 0.02 for person in persons]) < 0.8


def test_backgrounds_and_light_differ() -> None:
    data = Faces(count=40, seed=4)
    corners = np.stack([data.image(i)[:4, :4].reshape(-1, 3).mean(axis=0) for i in range(40)])
    assert (corners.std(axis=0) > 30).all()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"split": "tset"}, "did you mean 'test'"),
        ({"faces": 0}, "faces"),
        ({"faces": (3, 2)}, "faces"),
        ({"faces": 17}, "faces"),
        ({"size": 8}, "size"),
        ({"count": -1}, "count"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_that_cannot_be_used(setting: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Faces(**setting)  # type: ignore[arg-type]


def test_an_index_outside_is_an_error() -> None:
    data = Faces(count=2)
    for index in (-1, 2):
        with pytest.raises(IndexError):
            data.image(index)
        with pytest.raises(IndexError):
            data.truth(index)
