"""`tusk train [SOURCE ...] --preset NAME --keypoints K --types M ...`, and `tusk train --resume RUN`."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tusk.cli.flags import room_for, setting_flags, settings_from_flags
from tusk.cli.words import check_names, split_words
from tusk.errors import StoppedError, UsageError, UserError
from tusk.interrupts import process_is_ours, stop_signals

_HELP = """\
usage: tusk train [SOURCE ...] [flags]       tusk train --resume RUN

  SOURCE           a folder, file, glob or list of pictures, or several of them; a packed file; or a dataset's name
                   ('tusk data list'). A path is taken as it is written; one that begins with - comes after a --
  --preset NAME    where the settings start from: see 'tusk presets'
  --config FILE    settings in YAML, over the preset's
  --keypoints K    at most how many keypoints in an image
  --types M        how many types of things there are, or 'auto': as many as hold across views and clusterings
  --thing-size N   diameter of a usual thing in pixels; by default a first look at the pictures tells (tusk preview)
  --frames WHICH   of TIFF and GIF files with several frames: first, or all, each as a picture of its own
  --minutes N      stop after this time at the latest
  --seed N         seed of everything random
  --seeds N        train with this many seeds, one after the other, and keep the best, judged without labels
  --out DIR        folder for the results; default runs/train/NAME
  --resume RUN     go on with a run that stopped
  --device WHERE   auto (the default), cpu, cuda, cuda:1 or mps; auto takes a GPU where there is one, and under torchrun
                   one for each process
  --tensorboard    also log for TensorBoard
  --PART.SETTING   any single setting: see 'tusk config --help'
"""
_SHORT = {
    "--keypoints": "--model.keypoints",
    "--types": "--model.types",
    "--minutes": "--training.minutes",
    "--seed": "--training.seed",
    "--frames": "--data.frames",
}
# The flags that are no settings, and how many values each takes.
_OWN = {"--preset": 1, "--config": 1, "--out": 1, "--resume": 1, "--tensorboard": 0, "--seeds": 1}
_OWN |= {"--thing-size": 1, "--device": 1}
_LARGEST_THING = 100_000  # pixels
_SHOWN = 8  # sources that a model's command names


def run(args: Sequence[str]) -> None:
    """Train; the model's path goes to stdout."""
    if "--help" in args or "-h" in args:
        print(_HELP, end="")
        return
    process_is_ours()
    if os.environ.get("WORLD_SIZE", "1") != "1":
        _run_as_one_of_several(args)
        return
    stopped = StoppedError("tusk train", "stopped before the training began", "start it again")
    with stop_signals(lambda: stopped, "tusk train: ended at once, before the training began."):
        _train(args, *_read_flags(args))


def _run_as_one_of_several(args: Sequence[str]) -> None:
    """Under torchrun: a flag that is refused on one of the processes ends them all, with one sentence."""
    try:
        chosen = _read_flags(args)
    except UserError as error:
        from tusk.api.runs import refuse_together

        refuse_together(error)
    _train(args, *chosen)


def _read_flags(args: Sequence[str]) -> tuple[str | list[str] | None, dict[str, Any], dict[str, Any]]:
    """-> the source, the options of `tusk.train`, and the settings part by part."""
    words = split_words(args, lambda name: _OWN.get(name, room_for(_SHORT.get(name, name))))
    check_names(words.names, [*_OWN, *_SHORT, *setting_flags()], "tusk train", _SHORT)
    flags = argparse.ArgumentParser(prog="tusk train", add_help=False, allow_abbrev=False, exit_on_error=False)
    flags.add_argument("--preset")
    flags.add_argument("--config", type=Path)
    flags.add_argument("--out", type=Path)
    flags.add_argument("--resume", type=Path)
    flags.add_argument("--tensorboard", action="store_true")
    flags.add_argument("--seeds", type=int)
    flags.add_argument("--thing-size", type=float)
    flags.add_argument("--device")
    try:
        chosen, rest = flags.parse_known_args(_without_auto(words.flags))
    except argparse.ArgumentError as error:
        raise UsageError("flags of 'tusk train'", str(error), "see 'tusk train --help'") from error
    if chosen.seeds is not None and chosen.seeds < 1:
        raise UsageError("--seeds", f"{chosen.seeds} runs cannot be trained", "give 1 or more")
    if chosen.thing_size is not None and not 1 <= chosen.thing_size <= _LARGEST_THING:
        raise UsageError("--thing-size", f"{chosen.thing_size:g} is no number of pixels for a thing", "give 1 or more")
    options = {name: value for name, value in vars(chosen).items() if value}
    sources = words.plain
    if chosen.resume is not None and (sources or rest or options.keys() - {"resume", "tensorboard", "device"}):
        given = [*sources, *rest, *(f"--{name}" for name in options if name not in ("resume", "device"))]
        why = f"it goes on with the run's own settings, but {' '.join(given)} was given"
        raise UsageError("--resume", why, "leave that out")
    source = _source(sources)
    if source is not None and "--data.source" in words.names:
        why = f"it is given beside SOURCE ({sources[0]}), which means the same"
        raise UsageError("--data.source", why, "leave one of them out")
    settings: dict[str, Any] = {}
    if chosen.resume is None:
        from tusk.api.data import default_preset

        preset = chosen.preset or default_preset(source)
        settings = settings_from_flags(_longer(rest), preset, chosen.config, "tusk train")
    return source, options, settings


def _train(
    args: Sequence[str], source: str | list[str] | None, options: dict[str, Any], settings: dict[str, Any]
) -> None:
    from tusk.api.runs import prepare_torch
    from tusk.api.training import train

    prepare_torch()
    sources = source if isinstance(source, list) else [] if source is None else [source]
    model = train(source, command=_command(args, sources), **options, **settings)
    if model.path is not None:  # of several processes, one says it
        print(model.path)


def _source(sources: list[str]) -> str | list[str] | None:
    """None, one or several; checked before the seconds that torch takes."""
    if not sources:
        return None
    from tusk.data.sources import source_paths

    source_paths(sources, "SOURCE")
    if "-" in sources:
        why = "training reads its pictures more than once, and a list from stdin is gone after the first time"
        raise UsageError("SOURCE -", why, "write the list into a text file, and name that")
    return sources[0] if len(sources) == 1 else sources


def _command(args: Sequence[str], sources: Sequence[str]) -> str:
    """How the model was made. Of a thousand files the first will do: config.yaml has all of them."""
    if len(sources) <= _SHOWN:
        return shlex.join(["tusk", "train", *args])
    left_out = set(sources[_SHOWN:])
    words = [word for word in args if word not in left_out]
    return f"{shlex.join(['tusk', 'train', *words])}  # and {len(sources) - _SHOWN} more sources, see config.yaml"


def _without_auto(args: Sequence[str]) -> list[str]:
    """`--types auto` is what happens without the flag."""
    words: list[str] = []
    for word in args:
        if word == "auto" and words and words[-1] == "--types":
            words.pop()
        elif word != "--types=auto":
            words.append(word)
    return words


def _longer(args: list[str]) -> list[str]:
    """Short names as those of the settings."""
    words = []
    for word in args:
        name, equals, value = word.partition("=")
        words.append(f"{_SHORT.get(name, name)}{equals}{value}")
    return words
