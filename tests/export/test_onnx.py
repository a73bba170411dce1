"""Models as ONNX: the graph gives what the network gives, and runs without torch."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from PIL import Image

import tusk
from tests.pictures import draw_discs
from tusk.config import Config
from tusk.detection.onnx_model import OnnxModel
from tusk.errors import UserError
from tusk.export.models import export_onnx
from tusk.export.onnx.model import write_onnx
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, load_model, save_model
from tusk.naming import NamesFile, names_path
from tusk.naming.assign import assign
from tusk.naming.edits import Example, Hide, Merge, Rename
from tusk.naming.refit import Sample, sort, split, teach
from tusk.weights import shipped_models

SMALL = {"keypoints": 4, "types": 3, "channels": 6, "width": 8, "levels": 2, "window": 7}
SIZED = {**SMALL, "sizes": [4, 16], "decode": "layers", "background": "flat", "norm": "channel", "stride": 2}


def stored(model, data=None, seed=1, **detection):
    config = Config.model_validate({"model": model, "data": {"size": 32, **(data or {})}, "detection": detection})
    network = seeded_network(config.model, seed)
    if config.model.sizes is not None:
        with torch.no_grad():  # before training nothing is a thing
            network.encoder.head[-1].weight *= 20
            network.encoder.head[-1].bias.fill_(1.0)
    return StoredModel(network.eval(), config)


def scenes(count, seed, sizes=(32, 56)):
    """Images (3, H, W) in [0, 1] of mixed sizes with discs in them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        height, width = rng.integers(sizes[0], sizes[1] + 1, 2).tolist()
        discs = [(rng.uniform(0, width), rng.uniform(0, height), rng.uniform(2, 6)) for _ in range(6)]
        pixels = draw_discs(height, width, discs, [tuple(rng.integers(0, 256, 3).tolist()) for _ in discs])
        noise = rng.normal(0, 4, pixels.shape)
        yield np.clip(pixels + noise, 0, 255).astype(np.float32).transpose(2, 0, 1) / 255


def compare(model, graph, images):
    """-> how many points were the same."""
    network, config = model.network, model.config
    window, number = config.detection.window or config.model.window, 0
    for image in images:
        with torch.no_grad():
            encoding = network.encode(
                torch.from_numpy(image)[None],
                window=window,
                min_score=config.detection.min_score,
            )
            probability, kind = network.prototypes(encoding.descriptors).max(-1)
        points, found = encoding.keypoints, encoding.keypoints.found[0].numpy()
        theirs = graph.run(image[None])
        assert np.array_equal(theirs.score[0] > 0, found)
        assert np.abs(theirs.xy[0] - network.to_image(points.xy)[0].numpy())[found].max(initial=0) < 1e-3
        assert np.array_equal(theirs.type[0][found], kind[0].numpy()[found])
        for mine, other in ((points.score, theirs.score), (probability, theirs.probability)):
            assert np.abs(mine[0].numpy() - other[0])[found].max(initial=0) < 1e-3
        assert np.abs(theirs.descriptor[0] - encoding.descriptors[0].numpy())[found].max(initial=0) < 1e-3
        if points.radius is not None:
            size = 2 * config.model.stride * points.radius[0].numpy()
            assert np.allclose(theirs.size[0][found], size[found], atol=1e-3)
        number += int(found.sum())
    return number


@pytest.mark.slow
def test_two_hundred_images_of_mixed_sizes_are_as_in_torch(tmp_path):
    model = load_model(shipped_models()["mnist-hard"])
    write_onnx(model, tmp_path / "model.onnx")
    graph = OnnxModel(tmp_path / "model.onnx", threads=1)
    assert compare(model, graph, scenes(200, 0, (72, 104))) > 1000


@pytest.mark.parametrize(
    "model",
    [
        SMALL,
        {**SMALL, "stride": 2, "padding": "replicate", "descriptor_space": "standardised", "types": 2,
         "prototypes": [0, 1, 1], "count_border": True},
        {**SMALL, "descriptor_read": "truncated", "type_distance": "mean-square", "norm": "channel"},
        {**SMALL, "stride": 4, "decode": "layers", "background": "picture", "padding": "replicate"},
        SIZED,
    ],
    ids=["paper", "members", "authors", "layers", "sizes"],
)  # fmt: skip
def test_every_kind_of_network_is_as_in_torch(tmp_path, model):
    whole = stored(model)
    write_onnx(whole, tmp_path / "model.onnx")
    graph = OnnxModel(tmp_path / "model.onnx", threads=1)
    assert compare(whole, graph, scenes(20, 1)) > 20


def test_sized_keypoints_are_suppressed_as_the_models_own_settings_say(tmp_path):
    counts = []
    for suppression in (None, (1.0, 2.0)):
        whole = stored({**SIZED, "keypoints": 40, "window": 3}, suppression=suppression)
        write_onnx(whole, tmp_path / "model.onnx")
        found = OnnxModel(tmp_path / "model.onnx", threads=1).detect(
            [np.uint8(255 * image.transpose(1, 2, 0)) for image in scenes(5, 1)]
        )
        counts.append(sum(map(len, found)))
    assert counts[0] > 1.2 * counts[1] > 10


def test_batches_and_more_keypoints(tmp_path):
    model = stored(SMALL)
    write_onnx(model, tmp_path / "model.onnx")
    graph = OnnxModel(tmp_path / "model.onnx", threads=1)
    images = np.stack([next(scenes(1, seed, (40, 40))) for seed in range(3)])
    together = graph.run(images)
    for number in range(3):
        alone = graph.run(images[number : number + 1])
        assert np.allclose(alone.xy[0], together.xy[number], atol=1e-4)
    assert graph.run(images, 9).xy.shape == (3, 9, 2)
    assert np.allclose(graph.run(images, 9).xy[:, :4], together.xy, atol=1e-4)


def test_pictures_are_detected_as_by_the_model(tmp_path):
    save_model(tmp_path / "model.safetensors", stored({**SMALL, "stride": 2}))
    whole = tusk.load(tmp_path / "model.safetensors")
    export_onnx(str(tmp_path / "model.safetensors"), tmp_path / "model.onnx", {1: '=a, "b" 图'}, None, print)
    graph = tusk.load(tmp_path / "model.onnx")
    assert graph.names == ("type 0", '=a, "b" 图', "type 2") and graph.config.model == whole.config.model
    pictures = [np.uint8(image.transpose(1, 2, 0) * 255) for image in scenes(5, 3, (30, 90))]
    for mine, theirs in zip(whole.detect(pictures, min_gain=-np.inf), graph.detect(pictures), strict=True):
        assert (mine.source, mine.width, mine.height, mine.limit) == (
            theirs.source, theirs.width, theirs.height, theirs.limit
        )  # fmt: skip
        assert np.allclose(mine.xy, theirs.xy, atol=1e-3) and np.array_equal(mine.type, theirs.type)
        assert np.isnan(theirs.gain).all() and theirs.mask is None and mine.box_side == theirs.box_side
    Image.fromarray(pictures[0]).save(tmp_path / "one.png")
    assert len(graph.detect(tmp_path / "one.png", keypoints=2)) == 2
    assert len(graph.detect(tmp_path / "one.png", min_score=1.0)) == 0


def test_the_graph_follows_what_was_said_of_the_types(tmp_path):
    """Names, merges, splits, clicks and hidden types of names.json, as in the model that lies beside it."""
    whole = stored({**SMALL, "types": 6, "type_distance": "mean-square"})
    path = tmp_path / "model.safetensors"
    save_model(path, whole)
    pictures = [np.uint8(image.transpose(1, 2, 0) * 255) for image in scenes(30, 3)]
    found = tusk.load(path).detect(pictures, min_gain=-np.inf)
    raw = Sample(np.concatenate([one.type for one in found]), np.concatenate([one.descriptor for one in found]))
    common = np.argsort(-np.bincount(raw.types, minlength=6)).tolist()
    names = NamesFile(names_path(path), whole)
    names.edit(lambda _: Rename(type=common[0], name='=a, "b" 图'))
    names.edit(lambda _: Merge(into=common[0], other=common[1]))

    def now():
        return Sample(assign(names.naming(), raw.types, raw.descriptors), raw.descriptors)

    def clicked():
        rows = np.flatnonzero(now().types == common[0])[:5]
        return [Example(x=0, y=0, source=common[0], descriptor=tuple(raw.descriptors[row])) for row in rows]

    names.edit(lambda naming: split(naming, now(), common[0]))
    names.edit(lambda naming: teach(naming, now(), 7, "clicked", clicked()))
    names.edit(lambda _: Hide(type=6))
    names.edit(lambda naming: sort(naming, now()))
    export_onnx(str(path), tmp_path / "model.onnx", None, None, print)
    graph, named = tusk.load(tmp_path / "model.onnx"), tusk.load(path).detect(pictures, min_gain=-np.inf)
    assert graph.names[common[0]] == '=a, "b" 图' and graph.names[7] == "clicked" and len(graph.names) == 8
    seen = set()
    for mine, theirs in zip(named, graph.detect(pictures), strict=True):
        assert np.array_equal(mine.type, theirs.type) and np.allclose(mine.xy, theirs.xy, atol=1e-3)
        assert [row["name"] for row in theirs.rows()] == [row["name"] for row in mine.rows()]
        seen |= set(theirs.type.tolist())
    assert {common[0], 7} <= seen and not seen & {6, common[1]}


def test_tiles_with_sizes(tmp_path):
    model = stored(SIZED, {"fit": "tiles", "contrast": "flat"})
    write_onnx(model, tmp_path / "model.onnx")
    picture = draw_discs(80, 100, [(20, 20, 5), (70, 30, 4), (50, 60, 6)])
    found = OnnxModel(tmp_path / "model.onnx").detect(picture)
    assert len(found) and found.tiled and found.size is not None and np.isnan(found.gain).all()
    assert (np.diff(found.score) <= 0).all() and (found.xy >= 0).all() and (found.xy <= (99, 79)).all()


def test_torch_is_never_imported(tmp_path):
    write_onnx(stored(SMALL), tmp_path / "model.onnx")
    code = (
        "import sys, numpy, tusk; model = tusk.load(sys.argv[1]);"
        "found = model.detect(numpy.random.default_rng(0).integers(0, 256, (40, 50, 3), numpy.uint8)); found.rows();"
        "assert 'torch' not in sys.modules, 'torch'; assert len(found) == 4"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "model.onnx"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_a_file_says_about_itself(tmp_path):
    model = stored(SMALL)
    write_onnx(model, tmp_path / "model.onnx", {0: "cell"})
    read = onnx.load(tmp_path / "model.onnx")
    said = {entry.key: entry.value for entry in read.metadata_props}
    assert json.loads(said["names"]) == ["cell", "type 1", "type 2"] and said["fingerprint"] == model.fingerprint()
    assert Config.from_stored(json.loads(said["config"])) == model.config
    assert [one.name for one in read.graph.output] == ["xy", "score", "type", "probability", "descriptor"]


def test_faults_are_one_sentence(tmp_path):
    path = tmp_path / "model.onnx"
    write_onnx(stored(SMALL), path)
    graph = OnnxModel(path)
    for fault, why in [
        (lambda: graph.evaluate("digits"), "an ONNX file only detects"),
        (lambda: graph.detect(np.zeros((40, 40, 3), np.uint8), keypoints=0), "cannot be detected"),
        (lambda: tusk.load(tmp_path / "none.onnx"), "it cannot be read"),
        (lambda: tusk.load(path, device="cuda"), "runs on the CPU"),
        (lambda: export_onnx("mnist-hard", path, None, None, print), "is there already"),
        (lambda: export_onnx("mnist-hard", tmp_path / "x.pt", None, None, print), r"ends in \.onnx"),
        (lambda: export_onnx("mnist-hard", tmp_path / "x.onnx", None, 5000, print), "do not fit"),
    ]:
        with pytest.raises(UserError, match=why):
            fault()
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UserError, match="not a readable ONNX file"):
        OnnxModel(path)
    assert not (tmp_path / "x.onnx").exists()


@pytest.mark.parametrize(("key", "value"), [("format", "x"), ("version", "99"), ("config", "[]"), ("names", "[1]")])
def test_foreign_metadata_is_refused(tmp_path, key, value):
    path = tmp_path / "model.onnx"
    write_onnx(stored(SMALL), path)
    read = onnx.load(path)
    for entry in read.metadata_props:
        if entry.key == key:
            entry.value = value
    onnx.save(read, path)
    with pytest.raises(UserError, match=r"model\.onnx: it"):
        OnnxModel(path)


def test_without_onnxruntime_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match="onnxruntime is not installed; run 'pip install onnxruntime'"):
        OnnxModel(tmp_path / "model.onnx")
