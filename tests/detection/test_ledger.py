"""The ledger's lock: held while a part is worked on, and given up on every way out."""

from dataclasses import replace
from pathlib import Path

import pytest

from tusk.data.sources import Source
from tusk.detection.batch import Batch
from tusk.detection.ledger import Ledger, Manifest, checksum
from tusk.errors import UsageError


def begun(folder, count=40):
    source = Source("s", Path("s"), Path("/"), tuple(Path(f"/{number}.png") for number in range(count)))
    manifest = Manifest(
        "1", "model", "s", count, checksum(source), 16, None, 0.0, 0.0, 8, masks=False, overlays=False, detection={}
    )
    return source, manifest, lambda: Ledger(folder, source, manifest)


def is_open(folder):
    """Whether this process has a file of that folder open."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux tells which files are open")
    return any(folder in link.resolve().parents for link in Path("/proc/self/fd").iterdir())


def test_it_is_closed_by_its_block(tmp_path):
    _, _, make = begun(tmp_path)
    with make() as ledger:
        parts = ledger.open_parts(0, 1)  # kept, as whoever works on them does: a part is locked until the next
        part, paths = next(parts)
        assert part == 0 and len(paths) == 16 and is_open(tmp_path / "parts" / "locks")
    assert not is_open(tmp_path / "parts" / "locks")
    parts.close()  # has no lock to give back any more


def test_a_folder_of_other_results_leaves_nothing_open(tmp_path):
    source, manifest, make = begun(tmp_path)
    make().close()
    with pytest.raises(UsageError, match="another model"):
        Ledger(tmp_path, source, replace(manifest, model="other"))
    assert not is_open(tmp_path / "parts" / "locks")


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_the_middle_of_a_part_releases_it(tmp_path, kind):
    source, _, make = begun(tmp_path)
    held = []

    class Broken:
        def fit_file(self, *_):
            raise kind("broken")

    with make() as ledger:
        batch = Batch(Broken(), source, 40, tmp_path, ledger, 8, 3, write_results=lambda *_: None)
        release = ledger._locks.release
        ledger._locks.release = lambda byte: held.append(byte) or release(byte)
        with pytest.raises(kind) as caught:
            batch.run(lambda *_: None)
        assert held == [0] and caught.tb is not None
    assert not is_open(tmp_path / "parts" / "locks")
