"""A resumed training equals an unbroken one to the bit; a damaged checkpoint is refused; a full disk loses nothing."""

import errno
import json
from pathlib import Path

import pytest
import torch

from tests.training.test_trainer import configured, squares
from tusk.errors import DataError, UserError
from tusk.training.checkpoint import Checkpoints, trainer_tensors
from tusk.training.trainer import Trainer

CONFIG = configured(
    model={"descriptor_space": "standardised"},
    losses={"mutual_information": {"weight": 0.05}, "feature_equivariance": {"features": "standardised"}},
    training={"memory": 50, "prototype_start": "k-means", "warm_up": 0.2, "prototype_restarts": (0.5,)},
)


def steps(trainer, first, last):
    images = squares()
    batches = [next(images) for _ in range(last)]
    for step in range(first, last):
        trainer.train_step(batches[step], step / 20)
    return trainer


PATCHES = configured(
    losses={"pseudo_labels": {"weight": 0.05}},
    training={
        "memory": 200,
        "prototype_start": "spectral",
        "reassign_by_appearance": True,
        "warm_up": 0.4,
        "prototype_restarts": (0.5,),
    },
)


@pytest.mark.parametrize(
    ("broken_at", "config"), [(at, CONFIG) for at in (0, 1, 3, 5, 9, 10)] + [(at, PATCHES) for at in (5, 9)]
)
def test_resumed_equals_unbroken(tmp_path, broken_at, config):
    whole = steps(Trainer(config), 0, 12)
    checkpoints = Checkpoints(tmp_path, "config")
    checkpoints.save(steps(Trainer(config), 0, broken_at), seconds=1.5)
    resumed = Trainer(config)
    manifest = checkpoints.restore(resumed)
    assert (resumed.step, manifest.seconds) == (broken_at, 1.5)
    steps(resumed, broken_at, 12)
    ours, theirs = trainer_tensors(resumed), trainer_tensors(whole)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name
    assert ("memory_patches" in ours) == config.training.reassign_by_appearance


def test_a_checkpoint_of_another_form_of_adam_goes_on(tmp_path):
    older, checkpoints = Trainer(CONFIG), Checkpoints(tmp_path, "config")
    for optimiser in (older.network_optimiser, older.prototype_optimiser):
        optimiser.param_groups[0]["fused"] = False  # as it was in former versions
    checkpoints.save(steps(older, 0, 6), seconds=1.0)
    resumed = Trainer(CONFIG)
    checkpoints.restore(resumed)
    assert all(
        optimiser.param_groups[0]["fused"] for optimiser in (resumed.network_optimiser, resumed.prototype_optimiser)
    )
    batches = squares()
    batch = [next(batches) for _ in range(7)][6]
    losses = older.train_step(batch, 0.3).losses
    assert resumed.train_step(batch, 0.3).losses == pytest.approx(losses, rel=1e-6)
    ours, theirs = trainer_tensors(resumed), trainer_tensors(older)
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-4, atol=1e-6, msg=name)


def test_only_what_is_needed_is_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path, "config")
    trainer = Trainer(CONFIG)
    checkpoints.save(trainer, seconds=0)
    for step in (1, 2):
        trainer.step = step
        checkpoints.save(trainer, seconds=0)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["last.json", "step-0000002.safetensors"]


def test_damage_is_refused_by_name(tmp_path):
    checkpoints = Checkpoints(tmp_path, "config")
    trainer = Trainer(CONFIG)
    with pytest.raises(DataError, match="there is no checkpoint"):
        checkpoints.restore(trainer)
    checkpoints.save(trainer, seconds=0)
    with pytest.raises(DataError, match="another configuration"):
        Checkpoints(tmp_path, "other").restore(trainer)
    file = tmp_path / "step-0000000.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="checksum"):
        checkpoints.restore(trainer)
    file.unlink()
    with pytest.raises(DataError, match=r"step-0000000\.safetensors: it cannot be read"):
        checkpoints.restore(trainer)
    (tmp_path / "last.json").write_text("{")
    with pytest.raises(DataError, match=r"last\.json: it cannot be read"):
        checkpoints.restore(trainer)
    (tmp_path / "last.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(DataError, match="newer than this tusk"):
        checkpoints.restore(trainer)


def test_the_score_of_an_older_version_is_not_compared_with_ours(tmp_path):
    """It went by agreement alone, which is larger: no later checkpoint would ever be the best."""
    checkpoints, trainer = Checkpoints(tmp_path, "config"), Trainer(CONFIG)
    checkpoints.save(trainer, seconds=0, score=0.9)
    for name in ("best.json", "last.json"):
        values = json.loads((tmp_path / name).read_text())
        (tmp_path / name).write_text(json.dumps({**values, "version": 1}))
    assert checkpoints.restore(trainer).step == 0
    trainer.step = 3
    checkpoints.save(trainer, seconds=0, score=0.5)
    assert checkpoints.manifest("best").step == 3
    trainer.step = 4
    checkpoints.save(trainer, seconds=0, score=0.4)
    assert checkpoints.manifest("best").step == 3


@pytest.mark.parametrize("fails_at", ["step-", "last.json"])
def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, monkeypatch, fails_at):
    from tusk import io as files

    checkpoints = Checkpoints(tmp_path, "config")
    trainer = steps(Trainer(CONFIG), 0, 2)
    checkpoints.save(trainer, seconds=0)
    good = trainer_tensors(trainer)
    real = files.os.fsync

    def full(descriptor):
        if fails_at in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(files.os, "fsync", full)
    steps(trainer, 2, 3)
    with pytest.raises(UserError, match=r"cannot be written \(No space left on device\).*last good one is kept"):
        checkpoints.save(trainer, seconds=0)
    monkeypatch.undo()
    again = Trainer(CONFIG)
    assert checkpoints.restore(again).step == 2
    assert all(torch.equal(value, good[name]) for name, value in trainer_tensors(again).items())
    assert not list(tmp_path.glob(".*"))
