"""The page for the web: its files, and in a real browser, where one and onnxruntime-web are at hand, its points."""

import functools
import hashlib
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tusk
from tests.export.test_onnx import SIZED, SMALL, scenes, stored
from tusk.errors import UserError
from tusk.export.models import export_web
from tusk.export.web import runtime
from tusk.model.storage import save_model

# A copy of the package onnxruntime-web on this machine; tests use no network.
LOCAL = os.environ.get("TUSK_TEST_ONNXRUNTIME_WEB")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A stand-in for onnxruntime-web, with its digests."""
    folder = tmp_path / "onnxruntime-web" / "dist"
    folder.mkdir(parents=True)
    for name in runtime.FILES:
        (folder / name).write_text(name)
        monkeypatch.setitem(runtime.FILES, name, hashlib.sha256(name.encode()).hexdigest())
    return folder.parent


@pytest.fixture
def model(tmp_path):
    save_model(tmp_path / "model.safetensors", stored(SMALL))
    return str(tmp_path / "model.safetensors")


def test_everything_is_in_the_folder_and_nothing_is_named_outside(tmp_path, model, package):
    names = {0: '</script><b>"', 1: "图"}
    out = export_web(model, tmp_path / "page", names, None, package, print)
    assert {file.name for file in out.iterdir()} == {*runtime.FILES, "index.html", "page.js", "model.onnx"}
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "//" not in page.replace("<!DOCTYPE", "") and "//" not in re.sub(r"(?m)^//.*$", "", script(out))
    assert "connect-src 'self'" in page and "default-src 'none'" in page and page.count("</script>") == 3
    (settings,) = re.findall(r'id="settings">(.*?)</script>', page)
    assert json.loads(settings)["names"] == ['</script><b>"', "图", "type 2"]


def script(out):
    return (out / "page.js").read_text(encoding="utf-8")


def test_another_version_of_the_runtime_is_refused(tmp_path, model, package):
    (package / "dist" / "ort.wasm.min.js").write_text("other")
    with pytest.raises(UserError, match=r"ort\.wasm\.min\.js: it is not that of onnxruntime-web"):
        export_web(model, tmp_path / "page", None, None, package, print)
    with pytest.raises(UserError, match="it does not hold onnxruntime-web"):
        export_web(model, tmp_path / "page", None, None, tmp_path / "none", print)
    assert not (tmp_path / "page").exists()


def test_without_npm_it_says_what_to_do(tmp_path, model, monkeypatch):
    monkeypatch.setattr(runtime.shutil, "which", lambda _: None)
    with pytest.raises(UserError, match="npm, which fetches onnxruntime-web, is not installed; give --runtime"):
        export_web(model, tmp_path / "page", None, None, None, print)


def test_what_the_page_cannot_prepare_is_refused(tmp_path, package):
    save_model(tmp_path / "m.safetensors", stored(SIZED, {"fit": "tiles", "contrast": "flat"}))
    with pytest.raises(UserError, match="the page cannot prepare pictures"):
        export_web(str(tmp_path / "m.safetensors"), tmp_path / "page", None, None, package, print)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not LOCAL or not BROWSER, reason="needs a browser, and TUSK_TEST_ONNXRUNTIME_WEB")
def test_a_browser_finds_the_same_points(tmp_path):
    out = export_web("mnist-hard", tmp_path / "page", None, None, Path(LOCAL), print)
    pixels = np.uint8(next(scenes(1, 4, (80, 80))).transpose(1, 2, 0) * 255)
    Image.fromarray(pixels).save(out / "test.png")
    (out / "test.js").write_text(
        """(async () => {
        while (!session) await new Promise(next => setTimeout(next, 50));
        const file = new File([await (await fetch("test.png")).blob()], "test.png", {type: "image/png"});
        await show([file]);
        const foreign = await fetch("http://127.0.0.2:9/").then(() => "sent", () => "refused");
        const canvas = document.querySelector("canvas");
        document.getElementById("state").textContent =
          "DONE" + JSON.stringify({rows, foreign, drawn: [canvas.width, canvas.height]}) + "END";
        })();"""
    )
    page = (out / "index.html").read_text(encoding="utf-8")
    (out / "index.html").write_text(page.replace("</body>", '<script src="test.js"></script></body>'))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=out))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
             "--virtual-time-budget=60000", "--dump-dom", f"http://127.0.0.1:{server.server_port}/"],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    said = re.search("DONE(.*?)END", html.unescape(done.stdout))
    assert said, done.stdout[-2000:] + done.stderr[-2000:]
    read = json.loads(said[1])
    found = tusk.load("mnist-hard").detect(pixels, min_gain=-np.inf)
    assert [row[1] for row in read["rows"]] == found.type.tolist() and read["foreign"] == "refused"
    assert np.allclose([[float(row[3]), float(row[4])] for row in read["rows"]], found.xy, atol=0.02)
    assert read["drawn"] == [320, 320]
