"""Everything that computes, on a second device: where tensors of two devices met, it would be an error there.

`tests/pretend.py` is the device. What is found there is what the CPU finds: so is the arithmetic.
"""

import numpy as np
import pytest
import torch
from PIL import Image

import tusk
from tests.model.test_unet import SIZED
from tests.pretend import MixedDevicesError, pretend_device
from tests.serve.running import make_bench
from tests.training.test_trainer import configured, squares
from tusk.api.model import Model
from tusk.api.naming import Names
from tusk.data.registry import Request, open_dataset
from tusk.device import CPU
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, load_model
from tusk.report.predictions import predict
from tusk.report.sample import Sample
from tusk.training.checkpoint import Checkpoints, trainer_tensors
from tusk.training.figures import task_figures
from tusk.training.merging import merge_types
from tusk.training.trainer import Trainer
from tusk.training.validation import validate
from tusk.weights import model_path

KINDS = {
    "plain": {},
    "everything": {
        "model": {"descriptor_space": "standardised", "decode": "layers", "background": "picture"},
        "losses": {
            "feature_equivariance": {"features": "standardised", "weight": 1.0},
            "reconstruction": {"relative": True},
            "info_nce": {"weight": 0.5, "neighbours": 0.5},
            "mutual_information": {"weight": 1.0, "neighbours": 0.5, "memory": 0.5},
            "pseudo_labels": {"weight": 0.5},
            "uniform_region": {"weight": 0.1},
            "foreground": {"weight": 0.1},
            "opacity": {"weight": 0.1},
        },
        "training": {
            "memory": 500,
            "prototype_start": "spectral",
            "reassign_by_appearance": True,
            "start_at_mean": True,
            "restart_dead_every": 2,
            "second_warp": {"surroundings": (0.5, 0.9), "translate": 0.1},
        },
    },
    "windows": {"model": {"decode": "layers", "layer_window": 16, "background": "colour"}},
    "quantised": {"losses": {"quantisation": {"weight": 0.1}}, "training": {"alternate": False}},
    "sized": {
        "model": {**SIZED, "descriptor_space": "standardised"},
        "losses": {
            "reconstruction": {"views": "first", "relative": True},
            "blobs": {"weight": 0.5},
            "opacity": {"weight": 0.2, "binarity": 0.1, "on_background": True},
            "info_nce": {"weight": 0.5},
        },
    },
}


def trained(kind, device, steps=3):
    parts = KINDS[kind]
    training = {"batch": 8, "micro_batch": None, **parts.get("training", {})}
    trainer = Trainer(configured(**{**parts, "training": training}), device=device)
    batches = squares(4)
    reports = [trainer.train_step(next(batches), 0.2 * step) for step in range(steps)]
    return trainer, reports


@pytest.mark.parametrize("kind", KINDS)
def test_training_validation_and_checkpoints(kind, tmp_path):
    plain, wanted = trained(kind, "cpu")
    images = next(squares(6))
    with pretend_device() as device:
        trainer, reports = trained(kind, device)
        assert trainer.network.device == device and all(p.device == device for p in trainer.network.parameters())
        assert reports[0].losses == pytest.approx(wanted[0].losses, rel=1e-6)
        assert reports[-1].losses == pytest.approx(wanted[-1].losses, rel=0.05, abs=1e-4)
        figures = validate(trainer.network, trainer.config, images, 0)
        merge_types(trainer.network, trainer.config, images, 0)
        checkpoints = Checkpoints(tmp_path, "config")
        checkpoints.save(trainer, seconds=1.0)
        tensors = trainer_tensors(trainer)
    same = all(report.losses == other.losses for report, other in zip(reports, wanted, strict=True))
    assert same or kind == "sized"  # there, gradients are added up in another order
    if same:
        assert figures == validate(plain.network, plain.config, images, 0)
    assert all(value.device.type == "cpu" for value in tensors.values())
    for name, value in trainer_tensors(plain).items() if same else ():
        torch.testing.assert_close(tensors[name], value, rtol=0, atol=0)

    # From the device to the CPU, and back to the device.
    here = Trainer(trainer.config)
    checkpoints.restore(here)
    batch = next(squares(4))
    report = here.train_step(batch, 0.7)
    with pretend_device() as device:
        there = Trainer(trainer.config, device=device)
        checkpoints.restore(there)
        assert there.train_step(batch, 0.7).losses == pytest.approx(report.losses, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("name", ["mnist-hard", "clevr6", "tetrominoes", "blood-cells"])
def test_detection_and_the_page_of_shipped_models(name):
    model = tusk.load(name)
    size = model.config.data.size
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (2, size, size, 3), np.uint8)
    images[:, size // 4 : size // 2, size // 4 : size // 2] = 250
    unsized = model.config.model.decode == "layers" and model.config.model.sizes is None
    settings = {"relocate_keypoints": 2, "mask_tolerance": 0.1} if unsized else {}
    wanted = model.detect(list(images), **settings)
    encoded = model.encode(images[0])
    sample = Sample("noise", torch.from_numpy(images).permute(0, 3, 1, 2), (), ())
    page = predict(model.network, sample, 2)
    with pretend_device() as device:
        model.network.to(device)
        assert model.device == device
        found = model.detect(list(images), **settings)
        torch.testing.assert_close(model.encode(images[0]).score_map, encoded.score_map)
        other = predict(model.network, sample, 2)
    for one, same in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.xy, same.xy)
        np.testing.assert_array_equal(one.gain, same.gain)
        np.testing.assert_array_equal(one.type, same.type)
    assert torch.equal(page.xy, other.xy) and torch.equal(page.gain, other.gain) and other.xy.device.type == "cpu"


def test_evaluation_and_the_whole_page(tmp_path):
    wanted = tusk.load("mnist-hard").evaluate("digits", count=8, batch=4, progress=False)
    model = tusk.load("mnist-hard")
    with pretend_device() as device:
        model.network.to(device)
        figures = model.evaluate("digits", count=8, batch=4, progress=False)
        page = model.report(tmp_path / "page.html", data="digits", count=6)
    assert figures.to_dict()["figures"] == wanted.to_dict()["figures"] and page.is_file()


def test_the_page_that_is_served_and_names(tmp_path):
    digits = open_dataset("digits", Request(split="test", count=6, size=80))
    for number in range(6):
        Image.fromarray(digits.image(number)).save(tmp_path / f"{number}.png")
    path = model_path("mnist-hard")

    def served(device):
        model = load_model(path)
        model.network.to(device)
        bench = make_bench(tmp_path, tmp_path, model, tmp_path / f"{device.type}.json")
        return bench, [bench.detect(picture) for picture in bench.pictures.all()[:2]]

    _, wanted = served(CPU)
    with pretend_device() as device:
        bench, found = served(device)
        for one, same in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.detections.type, same.detections.type)
        assert bench.prototype(int(wanted[0].detections.type[0]))
        names = Names(load_model(path), path, tmp_path / "split.json", device)
        names.split(str(np.bincount(wanted[0].detections.type).argmax()), [str(tmp_path)])
        assert "is split" in names.last


def test_sized_things_in_tiles_and_figures_by_labels():
    config = configured(**KINDS["sized"], data={"fit": "tiles", "contrast": "flat"})
    network = seeded_network(config.model, 0).eval()
    picture = np.random.default_rng(0).integers(0, 255, (70, 90, 3), np.uint8)
    wanted = Model(StoredModel(network, config)).detect(picture)
    digits = open_dataset("digits", Request(split="test", count=4, size=config.data.size))
    images = torch.from_numpy(np.stack([digits.image(i) for i in range(4)])).permute(0, 3, 1, 2)
    truths = [digits.truth(i) for i in range(4)]
    with pretend_device() as device:
        network.to(device)
        found = Model(StoredModel(network, config)).detect(picture)
        task_figures(network, config, images, truths, 10)
    np.testing.assert_array_equal(found.xy, wanted.xy)


def test_the_pretended_device_is_strict():
    with pretend_device() as device:
        there, here = torch.ones(3, device=device), torch.ones(3)
        for mix in (
            lambda: there + here,
            lambda: there[torch.tensor([0])],
            lambda: torch.cat([there, here]),
            lambda: torch.where(here > 0, there, 0.0),
            lambda: there @ here,
            lambda: here.add_(there),
        ):
            with pytest.raises(MixedDevicesError):
                mix()
        with pytest.raises(RuntimeError):
            there.numpy()
        assert (there + torch.tensor(1.0)).tolist() == [2.0, 2.0, 2.0] and there.cpu().numpy().sum() == 3
        copied = here.to(device)
        here.zero_()
        assert copied.tolist() == [1.0, 1.0, 1.0] and copied.to(device) is copied
