"""A loss from outside the package: one file, and one line of YAML."""

import subprocess
import sys
from pathlib import Path

import pytest

from tusk.config import Config
from tusk.config.losses import register_settings
from tusk.losses import LossSettings
from tusk.presets import load_config

ROOT = Path(__file__).parents[2]

# All that somebody writes for a loss of their own.
LOSS = '''
from torch import Tensor

from tusk.losses import Loss, LossSettings, StepContext, register


class SparsityConfig(LossSettings):
    """Scores should be low."""

    power: float = 1.0

    def splits_over_images(self) -> bool:
        return self.power == 1


@register("sparsity", SparsityConfig)
class Sparsity(Loss[SparsityConfig]):
    """Mean of the score map, to some power."""

    def value(self, step: StepContext) -> Tensor:
        return step.encoding.score_map.pow(self.settings.power).mean()
'''

# In a process of its own: a loss stays registered.
TRAIN = """
import torch
import yaml
import sparsity
from pathlib import Path
from tests.training.test_trainer import BASE, squares
from tusk.errors import UsageError
from tusk.cli.flags import config_from_flags
from tusk.model.storage import StoredModel, load_model, save_model
from tusk.presets import load_config, make_config, merge, to_yaml
from tusk.training.trainer import Trainer

Path("base.yaml").write_text(yaml.safe_dump(BASE))
Path("mine.yaml").write_text(yaml.safe_dump(BASE) + "losses: {sparsity: {weight: 0.5}}\\n")

def train(file):
    trainer, images = Trainer(load_config(None, Path(file))), squares()
    return trainer, [trainer.train_step(next(images), step / 20) for step in range(4)]

without, plain = train("base.yaml")
trainer, reports = train("mine.yaml")
# Its value is in the report, weighted and under its name.
assert "sparsity" not in plain[0].losses
assert 0.2 < reports[0].losses["sparsity"] < 0.3, reports[0].losses  # half of a sigmoid around 0.5
# Its gradient changes the weights.
assert plain[0].losses["reconstruction"] == reports[0].losses["reconstruction"]
ours, theirs = trainer.network.encoder.state_dict(), without.network.encoder.state_dict()
assert any(not torch.equal(ours[name], theirs[name]) for name in ours)
assert reports[-1].losses["sparsity"] < reports[0].losses["sparsity"]
# YAML, flags and stored models know it.
config = trainer.config
assert make_config(yaml.safe_load(to_yaml(config)), "again") == config
flags = ["--config", "mine.yaml", "--losses.sparsity.power", "2", "--losses.sparsity.weight", "0", "0", "1", "0.3"]
settings = config_from_flags(flags, "tusk config").losses.sparsity
assert (settings.power, settings.weight) == (2.0, ((0.0, 0.0), (1.0, 0.3))), settings
save_model(Path("model.safetensors"), StoredModel(trainer.network, config))
assert load_model(Path("model.safetensors")).config == config
# Micro-batches follow its flag; misspelt names are answered.
for values, words in [
    ({"training": {"micro_batch": 4}, "losses": {"sparsity": {"weight": 1, "power": 2}}}, "losses.sparsity"),
    ({"losses": {"sparsty": {"weight": 1}}}, "did you mean 'sparsity'?"),
]:
    try:
        make_config(merge(BASE, values), "mine.yaml")
    except UsageError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
make_config(merge(BASE, {"training": {"micro_batch": 4}, "losses": {"sparsity": {"weight": 1}}}), "mine.yaml")
"""


@pytest.mark.slow
def test_a_loss_from_outside_trains_with_one_file_and_one_line(tmp_path):
    (tmp_path / "sparsity.py").write_text(LOSS)
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
    done = subprocess.run([sys.executable, "-c", path + TRAIN], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_stored_model_of_such_a_loss_loads_where_it_is_not_registered(tmp_path):
    (tmp_path / "sparsity.py").write_text(LOSS)
    make = """
import sparsity
from pathlib import Path
from tests.training.test_trainer import configured
from tusk.model.network import Network
from tusk.model.storage import StoredModel, save_model
config = configured(losses={"sparsity": {"weight": 0.5}})
save_model(Path("model.safetensors"), StoredModel(Network(config.model), config))
"""
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
    done = subprocess.run([sys.executable, "-c", path + make], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    from tusk.model.storage import load_model

    assert load_model(tmp_path / "model.safetensors").config.model.keypoints == 3


def test_names_are_checked():
    class OtherConfig(LossSettings):
        pass

    with pytest.raises(ValueError, match="already a loss called 'kmeans'"):
        register_settings("kmeans", OtherConfig)
    with pytest.raises(ValueError, match="must be a Python name"):
        register_settings("my-loss", OtherConfig)


def test_losses_are_in_one_order_everywhere():
    names = list(Config().losses.used())
    assert names == ["reconstruction", "feature_equivariance", "kmeans", "score_equivariance"]
    assert next(iter(load_config("clevr6").losses.used())) == "reconstruction"


def test_losses_that_cannot_be_used_say_why():
    for name in ("opacity", "foreground"):
        with pytest.raises(ValueError, match=rf"losses\.{name} needs model\.background"):
            Config.model_validate({"losses": {name: {"weight": 0.1}}})


@pytest.mark.parametrize(
    ("losses", "named"),
    [
        ({"info_nce": {"weight": 0.1}}, "losses.info_nce"),
        ({"mutual_information": {"weight": [[0.5, 0.0], [0.6, 0.1]]}}, "losses.mutual_information"),
        ({"feature_equivariance": {"features": "standardised"}}, "losses.feature_equivariance"),
        ({"reconstruction": {"relative": True}}, "losses.reconstruction"),
    ],
)
def test_micro_batches_follow_the_flag_of_each_loss(losses, named):
    with pytest.raises(ValueError, match=f"the whole batch is needed for {named}"):
        Config.model_validate({"losses": losses, "training": {"micro_batch": 8}})
    assert Config.model_validate({"losses": losses}).training.micro_batch is None
