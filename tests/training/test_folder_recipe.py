"""The recipe for folders of one's own, in miniature: it trains, saves, loads, detects, and goes on to the bit."""

import numpy as np
import pytest
import torch
from PIL import Image

import tusk
from tests.pictures import apart, draw_discs
from tests.training.test_preview import save
from tusk.config import Config
from tusk.data.flat_field import flatten_background
from tusk.presets import load_config, merge
from tusk.training.checkpoint import Checkpoints, trainer_tensors
from tusk.training.trainer import Trainer

SMALL = {
    "data": {"size": 64},
    "model": {"keypoints": 6, "types": 3, "channels": 8, "width": 4, "levels": 3},
    "training": {"batch": 8, "steps": 12, "evaluate_every": 6, "memory": 64, "prototype_restarts": [0.5]},
}


def drawn(number, side=64):
    rng = np.random.default_rng(number)
    colours = [(60, 40, 90), (150, 60, 60)]
    return draw_discs(side, side, apart(rng, side, side, [9, 8, 4]), colours, gradient=(-20, 10))


def batches(count):
    for step in range(count):
        images = [flatten_background(drawn(4 * step + place)) for place in range(4)]
        yield torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)


def steps(trainer, first, last):
    for step, images in enumerate(batches(last)):
        if step >= first:
            trainer.train_step(images, step / 12)
    return trainer


@pytest.mark.parametrize("broken_at", [3, 7])
def test_resumed_equals_unbroken(tmp_path, broken_at):
    config = Config.model_validate(merge(load_config("folder/fast").model_dump(), SMALL))
    whole = steps(Trainer(config), 0, 9)
    checkpoints = Checkpoints(tmp_path, "config")
    checkpoints.save(steps(Trainer(config), 0, broken_at), seconds=1.0)
    resumed = Trainer(config)
    checkpoints.restore(resumed)
    steps(resumed, broken_at, 9)
    ours, theirs = trainer_tensors(resumed), trainer_tensors(whole)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


@pytest.mark.slow
def test_a_folder_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "photos").mkdir()
    files = save(tmp_path / "photos", [drawn(number, 100) for number in range(6)])
    model = tusk.train(tmp_path / "photos", preset="folder/fast", out=tmp_path / "run", progress=False, **SMALL)
    again = tusk.load(tmp_path / "run" / "model.safetensors")
    first, second = model.detect(files[0]), again.detect(files[0])
    assert first.size is not None and first.tiled and first.mask_map.shape == (100, 100)
    np.testing.assert_array_equal(first.xy, second.xy)
    np.testing.assert_array_equal(first.size, second.size)
    # Things that look four times as large are said beside what was found.
    (tmp_path / "near").mkdir()
    for file in files[:2]:
        with Image.open(file) as picture:
            picture.resize((400, 400)).save(tmp_path / "near" / file.name)
    usual, near = (
        again.detect_files(tmp_path / name, tmp_path / f"found-{name}", progress=False) for name in ("photos", "near")
    )
    assert not any("times as large" in remark for remark in usual.remarks)
    assert any("times as large as those" in remark for remark in near.remarks)
