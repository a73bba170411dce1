"""`tusk train [SOURCE] --preset NAME --keypoints K --types M ...`, and `tusk train --resume RUN`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from tusk.cli.flags import settings_from_flags
from tusk.errors import UsageError

_HELP = """\
usage: tusk train [SOURCE] [flags]       tusk train --resume RUN

  SOURCE           a folder, file, glob or list of pictures, a packed file, or a dataset's name ('tusk data list')
  --preset NAME    where the settings start from: see 'tusk presets'
  --config FILE    settings in YAML, over the preset's
  --keypoints K    at most how many keypoints in an image
  --types M        how many types of things there are
  --minutes N      stop after this time at the latest
  --seed N         seed of everything random
  --seeds N        train with this many seeds, one after the other, and keep the best, judged without labels
  --out DIR        folder for the results; default runs/train/NAME
  --resume RUN     go on with a run that stopped
  --tensorboard    also log for TensorBoard
  --PART.SETTING   any single setting: see 'tusk config --help'
"""
_SHORT = {
    "--keypoints": "--model.keypoints",
    "--types": "--model.types",
    "--minutes": "--training.minutes",
    "--seed": "--training.seed",
}


def run(args: Sequence[str]) -> None:
    """Train; the model's path goes to stdout."""
    if "--help" in args or "-h" in args:
        print(_HELP, end="")
        return
    flags = argparse.ArgumentParser(prog="tusk train", add_help=False, allow_abbrev=False, exit_on_error=False)
    flags.add_argument("--preset")
    flags.add_argument("--config", type=Path)
    flags.add_argument("--out", type=Path)
    flags.add_argument("--resume", type=Path)
    flags.add_argument("--tensorboard", action="store_true")
    flags.add_argument("--seeds", type=int)
    try:
        chosen, rest = flags.parse_known_args(list(args))
    except argparse.ArgumentError as error:
        raise UsageError("flags of 'tusk train'", str(error), "see 'tusk train --help'") from error
    source = rest.pop(0) if rest and not rest[0].startswith("-") else None
    if chosen.seeds is not None and chosen.seeds < 1:
        raise UsageError("--seeds", f"{chosen.seeds} runs cannot be trained", "give 1 or more")
    options = {name: value for name, value in vars(chosen).items() if value}
    if chosen.resume is not None and (source or rest or options.keys() - {"resume", "tensorboard"}):
        given = [*([source] if source else []), *rest, *(f"--{name}" for name in options if name != "resume")]
        why = f"it goes on with the run's own settings, but {' '.join(given)} was given"
        raise UsageError("--resume", why, "leave that out")
    settings = {}
    if chosen.resume is None:
        from tusk.api.data import default_preset

        preset = chosen.preset or default_preset(source)
        settings = settings_from_flags(_longer(rest), preset, chosen.config, "tusk train")
    from tusk.api.runs import prepare_torch
    from tusk.api.training import train

    prepare_torch()
    model = train(source, command=shlex.join(["tusk", "train", *args]), **options, **settings)
    if model.path is not None:  # of several processes, one says it
        print(model.path)


def _longer(args: list[str]) -> list[str]:
    """Short names as those of the settings."""
    words = []
    for word in args:
        name, equals, value = word.partition("=")
        words.append(f"{_SHORT.get(name, name)}{equals}{value}")
    return words
