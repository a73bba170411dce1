"""The site builds: every page is in its menu, no link leads nowhere, and the API page finds the docstrings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tusk

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def test_the_site_builds_strictly(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference" / "index.html").read_text(encoding="utf-8")
    documented = [name for name in tusk.__all__ if f'id="tusk.{name}' in page]
    assert set(documented) == set(tusk.__all__) - {"__version__"}
