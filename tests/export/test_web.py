"""The page for the web: its files, and in a real browser, where one and onnxruntime-web are at hand, its points."""

import base64
import functools
import hashlib
import html
import http.server
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

import tusk
from tests.export.test_onnx import SIZED, SMALL, scenes, stored
from tusk.detection.onnx_model import OnnxModel
from tusk.errors import UserError
from tusk.export.models import export_web
from tusk.export.web import runtime
from tusk.model.storage import load_model, save_model
from tusk.naming import NamesFile, names_path
from tusk.naming.edits import Merge, Recolour, Rename

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


def test_names_beside_the_model_are_on_the_page(tmp_path, model, package):
    names = NamesFile(names_path(Path(model)), load_model(Path(model)))
    names.edit(lambda _: Rename(type=1, name="white cell"))
    names.edit(lambda _: Recolour(type=1, colour="#0a0b0c"))
    names.edit(lambda _: Merge(into=1, other=2))
    out = export_web(model, tmp_path / "page", {0: "dust"}, None, package, print)
    (settings,) = re.findall(r'id="settings">(.*?)</script>', (out / "index.html").read_text(encoding="utf-8"))
    read = json.loads(settings)
    assert read["names"] == ["dust", "white cell", "type 2"] and read["colours"][1][0] == "rgb(10, 11, 12)"
    assert OnnxModel(out / "model.onnx").names == ("dust", "white cell", "type 2")


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry on this machine that has two versions of the package."""

    package: ClassVar[bytes]
    asked: ClassVar[list[str]]

    def do_GET(self):
        self.asked.append(self.path)
        body = self.package if self.path.endswith(".tgz") else json.dumps(self.about()).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def about(self):
        home = f"http://127.0.0.1:{self.server.server_port}/onnxruntime-web"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(self.package).digest()).decode()
        versions = {
            version: {
                "name": "onnxruntime-web",
                "version": version,
                "dist": {"tarball": f"{home}/-/onnxruntime-web-{version}.tgz", "integrity": integrity},
            }
            for version in (runtime.VERSION, "99.0.0")
        }
        return {"name": "onnxruntime-web", "dist-tags": {"latest": "99.0.0"}, "versions": versions}

    def log_message(self, *_):
        pass


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_registry_gives_one_version_and_digests_are_checked(tmp_path, model, package, monkeypatch):
    Registry.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    try:
        Registry.package = packed(package)
        out = export_web(model, tmp_path / "page", None, None, None, print)
        assert {name: (out / name).read_text() for name in runtime.FILES} == {name: name for name in runtime.FILES}
        assert [path for path in Registry.asked if path.endswith(".tgz")] == [
            f"/onnxruntime-web/-/onnxruntime-web-{runtime.VERSION}.tgz"
        ]
        # What the registry itself calls right, and is not what this version of tusk was made with.
        (package / "dist" / "ort.wasm.min.js").write_text("other")
        Registry.package = packed(package)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "another cache"))
        with pytest.raises(UserError, match=rf"ort\.wasm\.min\.js: it is not that of .* {re.escape(runtime.VERSION)}"):
            export_web(model, tmp_path / "other", None, None, None, print)
        assert not (tmp_path / "other").exists()
    finally:
        server.shutdown()
        server.server_close()


def packed(package):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(package / "dist", "package/dist")
    return buffer.getvalue()


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
