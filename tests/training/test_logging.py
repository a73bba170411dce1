"""The log of a run, also of one that was killed and resumed."""

import json

from tusk.training.logging import RunLog
from tusk.training.trainer import StepReport


def report(step):
    return StepReport(step, step / 100, {"reconstruction": 1.0 / (step + 1)}, 50.0)


def test_what_came_after_the_checkpoint_is_forgotten(tmp_path):
    log = RunLog(tmp_path, resumed_at=None)
    for step in range(1, 8):
        log.step(report(step))
    log.validation(3, {"agreement": 0.5})
    log.validation(6, {"agreement": 0.6, "both": 0.1})
    log.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 8, "progr')  # a kill in the middle of a line

    log = RunLog(tmp_path, resumed_at=4)
    log.step(report(5))
    log.validation(6, {"agreement": 0.7, "both": 0.2})
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5]
    assert (tmp_path / "results.csv").read_text() == "step,agreement,both\n3,0.5,\n6,0.7,0.2\n"


def test_tensorboard_when_asked(tmp_path, monkeypatch):
    import sys

    import pytest

    from tusk.errors import UsageError

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UsageError, match="'track' extra"):
        RunLog(tmp_path, resumed_at=None, tensorboard=True)
