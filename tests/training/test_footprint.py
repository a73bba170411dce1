"""The estimate of memory against the peak of real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tusk.config import Config
from tusk.detection.footprint import detection_bytes
from tusk.model.network import Network
from tusk.presets import load_config, merge, preset_names
from tusk.training.footprint import check_memory, training_bytes, weight_count

MEASURE = """
import json, resource, sys
from tusk.allocator import keep_memory
keep_memory()
import torch
torch.set_num_threads(1)
from tusk.config import Config
config = Config.model_validate(json.loads(sys.argv[2]))
size = config.data.size
if sys.argv[1] == "train":
    from tusk.training.trainer import Trainer
    trainer = Trainer(config)
    images = torch.randint(0, 256, (config.training.batch // 2, 3, size, size), dtype=torch.uint8)
    trainer.train_step(images, 0.9)
else:
    from tusk.detection.pipeline import detect_batch
    from tusk.detection.settings import settings_from
    from tusk.model.network import Network
    images = torch.rand(int(sys.argv[1]), 3, size, size)
    detect_batch(Network(config.model).eval(), images, settings_from(config))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) * 1024)
"""


def measured(what, config):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(what), json.dumps(config.model_dump(mode="json"))],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def configured(preset, **over):
    return Config.model_validate(merge(load_config(preset).model_dump(), over))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count the peak otherwise")
@pytest.mark.parametrize(
    ("preset", "over"),
    [
        ("folder/plain", {"training": {"batch": 64}}),
        ("folder/fast", {"model": {"keypoints": 32}}),  # canvases
        ("clevr6/fast", {"training": {"batch": 48}}),  # layers in windows
        ("tetrominoes/paper", {"data": {"size": 64}, "training": {"batch": 8, "micro_batch": None}}),  # whole layers
    ],
)
def test_the_estimate_of_a_training_is_near_its_peak(preset, over):
    config = configured(preset, **over)
    # Validation between steps is not part of this process.
    assert 0.7 < training_bytes(config, validation=False) / measured("train", config) < 1.4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count the peak otherwise")
@pytest.mark.parametrize("preset", ["folder/plain", "folder/fast", "clevr6/fast"])
def test_the_estimate_of_detection_is_near_its_peak(preset):
    # With sizes, slots below the least score are left away: the most that it may take is without one.
    config = configured(preset, detection={"min_score": 0.0})
    need = detection_bytes(config.model, config.data.size, 48, config.model.keypoints)
    assert 0.7 < need / measured(48, config) < 1.4


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_fits_in_a_few_gigabytes_and_grows_with_its_batch(preset):
    config = configured(preset)
    assert 0.4 < training_bytes(config) / 2**30 < 8, preset
    twice = configured(preset, training={"batch": 64 * config.training.batch, "micro_batch": None})
    assert training_bytes(twice) > 4 * training_bytes(config, validation=False)
    assert training_bytes(twice, world=2) < 0.6 * training_bytes(twice)


def test_weights_are_counted():
    for preset in ("clevr6/fast", "mnist-hard/paper", "folder/fast"):
        model = load_config(preset).model
        real = sum(parameter.numel() for parameter in Network(model).parameters())
        assert weight_count(model) == pytest.approx(real, rel=0.1)


def test_the_setting_that_is_named_is_the_one_to_lower(monkeypatch):
    import tusk.training.footprint as footprint

    told = []
    monkeypatch.setattr(footprint, "check_fits", lambda *given: told.append((given[1], given[3])))
    check_memory(configured("folder/fast", training={"batch": 100_000}))
    check_memory(configured("mnist-hard/paper", training={"batch": 100_000, "micro_batch": 5_000}))
    check_memory(configured("folder/fast", data={"size": 4096}, training={"batch": 2}))
    assert told == [("training.batch 100000", 1), ("training.micro_batch 5000", 1), ("data.size 4096", 1)]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    check_memory(configured("folder/fast"), world=4)
    assert told[-1][1] == 2
