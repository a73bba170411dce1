"""Clusters of descriptors."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix

from tusk.training.clustering import (
    balanced_clusters,
    kmeans_clusters,
    reassign_by_appearance,
    restart_dead_prototypes,
    spectral_clusters,
)


def test_kmeans_finds_separate_clusters_and_fills_up():
    rng = np.random.default_rng(0)
    centres = torch.eye(3, 5)
    points = F.normalize(
        centres.repeat_interleave(40, 0) + torch.tensor(rng.normal(size=(120, 5))).float() * 0.05, dim=-1
    )
    found = kmeans_clusters(points, 3, seed=0).centres
    assert ((found @ centres.T).amax(0) > 0.99).all()
    few = kmeans_clusters(points[:2], 4, seed=0).centres
    assert few.shape == (4, 5)
    torch.testing.assert_close(few.norm(dim=-1), torch.ones(4))


@pytest.mark.filterwarnings("error")
def test_things_that_are_the_same_to_the_bit_are_no_fault():
    points = torch.eye(3).repeat(20, 1)
    found = kmeans_clusters(points, 5, seed=0)
    assert len(found.group.unique()) == 3 and len(found.centres) == 5


def test_a_dead_type_takes_half_of_the_most_scattered():
    centres = torch.eye(4, 5)
    rng = np.random.default_rng(0)
    noise = torch.tensor(rng.normal(size=(160, 5))).float() * 0.05
    points = F.normalize(centres.repeat_interleave(40, 0) + noise, dim=-1)
    # Two kinds share prototype 2; prototype 3 is far from everything.
    prototypes = F.normalize(torch.stack([centres[0], centres[1], centres[2] + centres[3], -centres[0]]), dim=-1)
    restarted = restart_dead_prototypes(prototypes, points, seed=0, least=0.1)
    assert torch.equal(restarted[:2], prototypes[:2])
    assert ((restarted @ centres.T).amax(0) > 0.99).all()


def test_living_types_are_left_alone():
    points = F.normalize(torch.eye(4, 5).repeat(10, 1), dim=-1)
    prototypes = torch.eye(4, 5)
    assert torch.equal(restart_dead_prototypes(prototypes, points, seed=0, least=0.1), prototypes)
    assert torch.equal(
        restart_dead_prototypes(prototypes, points[:1], seed=0, least=0.1), prototypes
    )  # too few to tell


def test_spectral_groups_follow_chains_where_kmeans_cuts_them():
    # Two long arcs on a sphere, one above the other: each is one chain of neighbours, and longer than they are apart.
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2.8, 600)
    height = np.where(np.arange(600) < 300, 0.35, -0.35)
    points = np.stack([np.cos(angle), np.sin(angle), height], 1) + rng.normal(size=(600, 3)) * 0.02
    points = F.normalize(torch.tensor(points).float(), dim=-1)
    found = spectral_clusters(points, 2, seed=0).centres
    assert found[:, 2].abs().min() > 0.3 and found[0, 2] * found[1, 2] < 0
    cut = kmeans_clusters(points, 2, seed=0).centres
    assert cut[:, 2].abs().max() < 0.2


def test_spectral_with_few_descriptors_is_kmeans():
    points = F.normalize(torch.randn(30, 4, generator=torch.Generator().manual_seed(0)), dim=-1)
    assert torch.equal(spectral_clusters(points, 3, seed=1).centres, kmeans_clusters(points, 3, seed=1).centres)


def test_even_groups_are_even_and_sensible():
    rng = np.random.default_rng(0)
    # One wide cloud of 200 and two of 100 that lie close together: plain k-means would rather part the near ones last.
    clouds = [rng.normal(size=(100, 2)) * 0.3 + centre for centre in ((0, 0), (1.5, 0), (8, 0), (9.5, 0))]
    labels = balanced_clusters(np.concatenate(clouds), 4, seed=0)
    assert np.bincount(labels, minlength=4).min() > 80
    for number in range(4):
        own = labels[number * 100 : (number + 1) * 100]
        assert np.bincount(own).max() > 90


def pictures(kinds, seed=0):
    """uint8 (N, 3, 16, 16): each kind's own pattern, with noise."""
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.rand(10, 3, 16, 16, generator=generator)
    noisy = patterns[torch.as_tensor(kinds)] + 0.2 * torch.randn(len(kinds), 3, 16, 16, generator=generator)
    return (noisy.clamp(0, 1) * 255).to(torch.uint8)


@pytest.mark.parametrize("like", [0, 1, 2])
def test_a_separate_fragment_joins_the_cluster_that_it_looks_like(like):
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2, 3], [300, 300, 300, 45])  # 3 is the fragment, far from all
    noise = torch.tensor(rng.normal(size=(len(kinds), 6))).float() * 0.1
    points = F.normalize(torch.eye(4, 6)[kinds] + noise, dim=-1)
    found = spectral_clusters(points, 3, seed=0, patches=pictures(np.where(kinds == 3, like, kinds)))
    groups = [np.bincount(found.group[kinds == kind].numpy(), minlength=3) for kind in range(4)]
    assert len({int(counts.argmax()) for counts in groups[:3]}) == 3
    assert groups[3].argmax() == groups[like].argmax() and groups[3].max() == 45
    centre = F.normalize(points[torch.as_tensor((kinds == like) | (kinds == 3))].sum(0), dim=-1)
    assert (found.centres @ centre).max() > 0.99


def with_fragment(patches, fragments, size=30):
    """Clusters 0 and 1 of four fragments each, and a separate fragment of cluster 0 that may look like another."""
    kinds = np.repeat([0, 1, patches], [200, 200, size])
    labels = np.repeat([0, 1, 0], [200, 200, size])
    parts = np.concatenate([np.arange(400) // 50, 8 + np.arange(size) * fragments // size])
    ties = (
        1.0 * (labels[:, None] == labels) * ((np.arange(len(labels)) < 400)[:, None] == (np.arange(len(labels)) < 400))
    )
    return labels, reassign_by_appearance(labels, parts, csr_matrix(ties), pictures(kinds))


@pytest.mark.parametrize("fragments", [1, 2])
def test_only_the_separate_fragment_moves(fragments):
    before, after = with_fragment(patches=1, fragments=fragments)
    assert np.array_equal(after[:400], before[:400]) and (after[400:] == 1).all()


def test_a_fragment_stays_where_patches_agree_or_decide_nothing_or_it_is_tiny():
    for patches, size in ((0, 30), (1, 1)):
        before, after = with_fragment(patches=patches, fragments=1, size=size)
        assert np.array_equal(after, before)
    labels, parts = np.repeat([0, 1, 0], [200, 200, 30]), np.repeat(np.arange(9), [50] * 8 + [30])
    noise = torch.randint(0, 256, (430, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert np.array_equal(reassign_by_appearance(labels, parts, csr_matrix(np.eye(430)), noise), labels)


def test_a_rare_kind_is_not_taken_for_a_fragment_of_another():
    labels = np.repeat([0, 1, 2], [200, 200, 30])
    parts = np.repeat(np.arange(9), [50] * 8 + [30])
    patches = pictures(np.repeat([0, 1, 0], [200, 200, 30]))
    assert np.array_equal(reassign_by_appearance(labels, parts, csr_matrix(np.eye(430)), patches), labels)
