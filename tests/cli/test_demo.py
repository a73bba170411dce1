"""The demo, cut short: everything but the waiting."""

import re
from functools import partial

import torch

from tests.report.reader import read_page
from tusk.cli import main as cli
from tusk.model.storage import load_model
from tusk.presets import load_config
from tusk.training import start


def test_the_demo_learns_detects_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(start, "sample_validation_images", partial(start.sample_validation_images, count=24))
    cli.main(["demo", "--minutes", "0.05", "--count", "30", "--out", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert said.out.strip() == str(tmp_path / "out")
    assert re.search(r"On 30 canvases .* \d+\.\d% of 270 digits found", said.err.replace("\n", " "))

    page = tmp_path / "out" / "report.html"
    text = page.read_text()
    assert text.count("<img ") > 12 * 3 + 10
    read = read_page(text)
    assert "What tusk learnt from digits" in read.text and "of 270 things" in read.text
    assert read.ids[:4] == ["state", "run", "images", "types"] and {"plane", "confusion"} <= set(read.ids)

    model = load_model(tmp_path / "out" / "model.safetensors")
    assert model.config.model == load_config("digits").model
    assert model.provenance["command"] == "tusk demo" and model.provenance["steps"] >= 1
    output = model.network(torch.rand(1, 3, 80, 80), missing="empty")
    assert output.xy.shape == (1, 9, 2)
    assert load_config(None, tmp_path / "out" / "config.yaml") == model.config
    written = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"config.yaml", "model.safetensors", "report.html", "metrics.jsonl", "results.csv"} <= written
