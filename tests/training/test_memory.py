"""The memory of descriptors."""

import pytest
import torch
import torch.nn.functional as F

from tusk.training.memory import DescriptorMemory


def test_keeps_the_latest():
    memory = DescriptorMemory(5)
    for number in range(6):
        memory.add(torch.full((2, 1), float(number)))
    assert len(memory) == 5
    assert memory.latest(3)[:, 0].tolist() == [4, 5, 5]


def test_patches_stay_beside_their_descriptors():
    memory = DescriptorMemory(5)
    for number in range(6):
        memory.add(torch.full((2, 1), float(number)), torch.full((2, 3, 16, 16), number, dtype=torch.uint8))
    assert memory.patches[:, 0, 0, 0].tolist() == memory.latest()[:, 0].tolist() == [3, 4, 4, 5, 5]
    memory.replace(torch.zeros(1, 1))
    assert memory.patches is None


def test_no_memory_keeps_only_the_newest_batch():
    memory = DescriptorMemory(0)
    memory.add(torch.zeros(4, 2))
    memory.add(torch.ones(3, 2))
    assert memory.latest().tolist() == [[1, 1]] * 3


def test_newcomers_join_the_group_of_most_of_their_nearest():
    generator = torch.Generator().manual_seed(0)
    centres = torch.tensor([[1.0, 0, 0], [0, 1.0, 0]])

    def around(group, count):
        return F.normalize(centres[group] + 0.1 * torch.randn(count, 3, generator=generator), dim=-1)

    memory = DescriptorMemory(60)
    memory.add(torch.cat([around(0, 30), around(1, 30)]))
    memory.groups = torch.tensor([0] * 30 + [1] * 30)
    memory.add(torch.cat([around(1, 5), around(0, 5)]))
    assert memory.groups[-10:].tolist() == [1] * 5 + [0] * 5
    assert len(memory.groups) == len(memory) == 60


def test_pseudo_labels_are_the_shares_of_the_ten_nearest():
    generator = torch.Generator().manual_seed(1)
    memory = DescriptorMemory(100)
    kept, new = (F.normalize(torch.randn(n, 4, generator=generator), dim=-1) for n in (80, 7))
    memory.add(kept)
    memory.groups = torch.randint(3, (80,), generator=generator)
    encoding = memory.pseudo_labels(new, 3)
    for row, descriptor in zip(encoding, new, strict=True):
        order = sorted(range(80), key=lambda i: -float(descriptor @ kept[i]))[:10]
        expected = [sum(int(memory.groups[i]) == group for i in order) / 10 for group in range(3)]
        assert row.tolist() == pytest.approx(expected)


def test_members_of_small_clusters_count_for_more_where_clusters_are_even():
    memory = DescriptorMemory(100, even=True)
    memory.add(torch.ones(16, 1))
    memory.groups = torch.tensor([0] * 12 + [1] * 4)
    count = torch.bincount(memory.groups[(torch.ones(1, 1) @ torch.ones(1, 16)).topk(10).indices[0]], minlength=2)
    weighed = count / torch.tensor([1.5, 0.5])
    torch.testing.assert_close(memory.pseudo_labels(torch.ones(1, 1), 2)[0], weighed / weighed.sum())
    memory.groups[12:15] = 0  # one of sixteen: it counts for two, not for eight
    count = torch.bincount(memory.groups[(torch.ones(1, 1) @ torch.ones(1, 16)).topk(10).indices[0]], minlength=2)
    weighed = count / torch.tensor([15 / 8, 0.5])
    torch.testing.assert_close(memory.pseudo_labels(torch.ones(1, 1), 2)[0], weighed / weighed.sum())


def test_of_two_groups_that_touch_the_smaller_one_is_not_swallowed():
    generator = torch.Generator().manual_seed(0)

    def left(even):
        memory = DescriptorMemory(600, even=even)

        def drawn(count):
            angle = torch.rand(count, generator=generator) * 1.0
            return torch.stack([angle.cos(), angle.sin()], 1)

        kept = drawn(600)
        memory.add(kept)
        memory.groups = (kept[:, 1] / kept[:, 0] > torch.tan(torch.tensor(0.8))).long()  # a fifth of what is one cloud
        for _ in range(240):
            memory.add(drawn(100))
        return float((memory.groups == 1).float().mean())

    assert left(even=True) > 0.35
    assert left(even=False) < 0.25


def test_means_of_groups_and_of_none():
    memory = DescriptorMemory(10)
    memory.add(torch.tensor([[1.0, 0], [0, 1.0], [0.6, 0.8]]))
    memory.groups = torch.tensor([0, 2, 2])
    before = torch.tensor([[0.0, 1], [0.8, 0.6], [1, 0]])
    expected = torch.stack([torch.tensor([1.0, 0]), before[1], F.normalize(torch.tensor([0.6, 1.8]), dim=0)])
    torch.testing.assert_close(memory.means(before), expected)
