"""The dataset of made scenes: truth, determinism, limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from tusk.data.dataset import Dataset
from tusk.data.datasets.clevr_made import LEAST_VISIBLE, ClevrMade
from tusk.data.synthetic.clevr.render import centres
from tusk.data.synthetic.clevr.scene import COLORS, MATERIALS, SHAPES, SIZES
from tusk.errors import UsageError


@pytest.fixture(scope="module")
def made() -> ClevrMade:
    return ClevrMade(count=40, seed=3)


def test_same_bytes_for_the_same_seed_in_any_order(made: ClevrMade) -> None:
    again = ClevrMade(count=40, seed=3)
    order = [5, 0, 17, 0]
    first = {index: made.image(index).tobytes() for index in sorted(set(order))}
    assert all(again.image(index).tobytes() == first[index] for index in order)
    assert len(set(first.values())) == len(first)
    others = (ClevrMade(count=40, seed=4), ClevrMade(count=40, seed=3, split="test"))
    assert all(other.image(0).tobytes() != first[0] for other in others)
    assert ClevrMade(count=6, seed=3).image(5).tobytes() == first[5]


def test_truth_of_every_scene(made: ClevrMade) -> None:
    numbers = set()
    for index in range(len(made)):
        scene, truth = made.scene(index), made.truth(index)
        assert truth.points is not None
        assert truth.boxes is not None
        assert truth.mask is not None
        count = len(scene.things)
        numbers.add(count)
        areas = np.bincount(truth.mask.ravel(), minlength=count + 1)
        assert areas.size == count + 1
        assert areas[1:].min() >= LEAST_VISIBLE
        for number, one in enumerate(scene.things):
            rows, columns = np.nonzero(truth.mask == number + 1)
            edges = [columns.min() - 0.5, rows.min() - 0.5, columns.max() + 0.5, rows.max() + 0.5]
            np.testing.assert_array_equal(truth.boxes[number], edges)
            named = {key: attribute.names[attribute.values[number]] for key, attribute in truth.attributes.items()}
            assert named == {
                "shape": SHAPES[one.shape],
                "color": COLORS[one.color],
                "size": SIZES[one.size],
                "material": MATERIALS[one.material],
            }
        np.testing.assert_array_equal(truth.points, centres(scene, 128))
    assert numbers == {3, 4, 5, 6}


def test_image_and_mask_fit_each_other(made: ClevrMade) -> None:
    """Red, green and blue of things that are coloured differ; those of the ground hardly do."""
    for index in range(4):
        image, truth = made.image(index).astype(int), made.truth(index)
        assert image.shape == (128, 128, 3)
        assert made.image(index).dtype == np.uint8
        assert truth.mask is not None
        hue = np.ptp(image, axis=2)
        assert np.percentile(hue[~ndimage.binary_dilation(truth.mask > 0, iterations=3)], 95) < 12
        for number, color in enumerate(truth.attributes["color"].values):
            own = truth.mask == number + 1
            if COLORS[color] != "gray":
                assert np.median(hue[own]) > 12


def test_a_scene_does_not_depend_on_the_size_of_its_image() -> None:
    small, large = ClevrMade(count=3, size=64), ClevrMade(count=3, size=128)
    assert all(ClevrMade(count=3, size=40).scene(index) == large.scene(index) for index in range(3))
    halved = large.image(2).reshape(64, 2, 64, 2, 3).mean(axis=(1, 3))
    assert np.abs(halved - small.image(2)).mean() < 3
    small_points, large_points = small.truth(2).points, large.truth(2).points
    assert small_points is not None
    assert large_points is not None
    np.testing.assert_allclose(small_points + 0.5, (large_points + 0.5) / 2, atol=1e-3)


def test_ten_objects_and_the_protocol() -> None:
    crowded = ClevrMade(count=2, min_objects=10, max_objects=10)
    assert isinstance(crowded, Dataset)
    truth = crowded.truth(0)
    assert truth.mask is not None
    assert set(np.unique(truth.mask)) == set(range(11))
    assert len(ClevrMade()) == 70_000
    assert len(ClevrMade(split="test")) == 10_000
    with pytest.raises(IndexError):
        crowded.image(2)
    with pytest.raises(IndexError):
        crowded.truth(-1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"split": "tset"},
        {"count": 0},
        {"seed": -1},
        {"size": 4},
        {"max_objects": 11},
        {"min_objects": 5, "max_objects": 4},
        {"min_objects": 0},
    ],
)
def test_settings_that_cannot_be_used(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        ClevrMade(**wrong)  # type: ignore[arg-type]
