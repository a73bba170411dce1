"""Types by themselves: prototypes of one kind are merged, different kinds are not, however rare."""

import numpy as np

from tusk.training.merging import _ordered, co_association


def clouds(centres, counts, seed=0, spread=0.05):
    random = np.random.RandomState(seed)
    points = np.concatenate(
        [centre + spread * random.randn(n, len(centre)) for centre, n in zip(centres, counts, strict=True)]
    )
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_halves_of_one_cloud_belong_together_and_a_rare_kind_does_not():
    centres = np.eye(8)[:3]
    points = clouds(centres, [400, 400, 25])  # the third: three in a hundred
    other = clouds(centres, [400, 400, 25], seed=1)
    # Four prototypes: the first cloud is cut in two along its first free direction.
    nearest = np.r_[np.where(points[:400, 4] > 0, 0, 1), np.full(400, 2), np.full(25, 3)]
    together = co_association([points, other], nearest, 4, seed=0)
    assert together[0, 1] > 0.3, "two halves of one cloud"
    apart = [together[a, b] for a, b in [(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]]
    assert max(apart) < 0.15
    np.testing.assert_allclose(together, together.T)
    np.testing.assert_allclose(np.diag(together), 1)


def test_types_are_ordered_by_size_and_unused_prototypes_join_one():
    group = np.array([2, 0, 0, 1, 3])  # the last is nobody's
    nearest = np.array([0, 0, 1, 2, 3, 3])
    sizes = np.array([10.0, 12.0, 50.0, 60.0, 3.0, 4.0])
    assert _ordered(group, nearest, sizes) == (1, 0, 0, 2, 0)
