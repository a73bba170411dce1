"""The wheel works where nothing of the source tree is: presets and weights are inside, the version is the package's."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tusk import __version__
from tusk.data.datasets.digits import Digits

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def tusk(wheel, tmp_path_factory):
    """-> a function that runs `tusk` in a clean environment, which borrows the dependencies of this one."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    install = [scripts / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, env=environment)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run(
        [scripts / "python", "-c", ask], check=True, capture_output=True, text=True, env=environment
    )
    # After its own packages on the path, and without reading .pth files, so that no editable install comes along.
    Path(packages.stdout.strip(), "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(*args, cwd=folder):
        return subprocess.run([scripts / "tusk", *args], cwd=cwd, capture_output=True, text=True, env=environment)

    return run


def test_presets_and_weights_are_inside_and_nothing_foreign(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("presets/**/*.yaml", "weights/*.safetensors", "py.typed"):
        files = {file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src" / "tusk").glob(kind)}
        assert files and files <= names
    assert {name.partition("/")[0] for name in names} == {"tusk", f"tusk_keypoints-{__version__}.dist-info"}


def test_it_runs_from_a_clean_environment(tusk, tmp_path):
    done = tusk("--version")
    assert done.returncode == 0 and __version__ in done.stdout, done.stderr
    done = tusk("presets")
    assert done.returncode == 0 and "mnist-hard" in done.stdout, done.stderr
    Image.fromarray(np.array(Digits(split="test", count=1).image(0))).save(tmp_path / "picture.png")
    done = tusk("detect", "mnist-hard", "picture.png", "--out", "found", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "found" / "detections.csv").read_text().splitlines()) == 1 + 9  # nine digits
