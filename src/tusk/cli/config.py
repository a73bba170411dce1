"""`tusk config [--preset NAME] [--config FILE] [--PART.SETTING VALUE ...]`: the whole configuration as YAML."""

from __future__ import annotations

from collections.abc import Sequence

from tusk.cli.flags import config_from_flags
from tusk.presets import to_yaml


def run(args: Sequence[str]) -> None:
    print(to_yaml(config_from_flags(args, "tusk config")), end="")
