"""The command line: one verb, one short function. Nothing heavy is imported before its verb runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from tusk import __version__
from tusk.errors import EXIT_FAILED, EXIT_STOPPED, UsageError, UserError, nearest

_HELP = """\
tusk finds the recurring things in unlabelled images: where they are and which are of the same type.

usage: tusk VERB [flags]          tusk VERB --help tells a verb's flags

verbs
{verbs}
flags
  --help      this text
  --version   the version
"""


def demo(
    minutes: Annotated[float, tyro.conf.arg(help="How long to learn, at most.")] = 4.5,
    seed: Annotated[int, tyro.conf.arg(help="Seed of everything random.")] = 0,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for the results; default runs/demo/digits.")] = None,
) -> None:
    """Learn handwritten digits from scratch in a few minutes, without a label, and show what was found."""
    if not 0 < minutes <= 24 * 60:
        raise UsageError("--minutes", f"{minutes:g} is not a time to learn for", "give minutes from above 0 to 1440")
    if seed < 0:
        raise UsageError("--seed", f"{seed} is negative", "give 0 or more")
    folder = new_folder(Path("runs/demo/digits")) if out is None else out
    make_folder(folder)
    prepare_torch()
    from rich.console import Console

    from tusk.cli.demo import run_demo

    run_demo(folder, minutes, seed, Console(stderr=True))
    print(folder)


def train(args: Sequence[str]) -> None:
    """Learn from a folder of pictures or a named dataset, without labels."""
    from tusk.cli.train import run

    run(args)


def detect(args: Sequence[str]) -> None:
    """Find the things that a model has learnt in pictures: points, types, scores, masks."""
    from tusk.cli.detect import run

    run(args)


def evaluate(args: Sequence[str]) -> None:
    """Measure a model on a dataset with known truth, beside the paper's figures."""
    from tusk.cli.evaluate import run

    run(args)


def config(args: Sequence[str]) -> None:
    """ProgressDisplay the whole configuration that a preset, a YAML file and flags give together, as YAML."""
    from tusk.cli.flags import config_from_flags
    from tusk.presets import to_yaml

    print(to_yaml(config_from_flags(args, "tusk config")), end="")


def data(args: Sequence[str]) -> None:
    """List, fetch, make and look into datasets."""
    from tusk.cli.data import run

    run(args)


def report(
    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A run's folder, a model file, or a model's name.")],
    out: Annotated[Path | None, tyro.conf.arg(help="The page to write; default RUN/report.html.")] = None,
    data: Annotated[str | None, tyro.conf.arg(help="Images to show it on: a folder or a dataset's name.")] = None,
    count: Annotated[int, tyro.conf.arg(help="How many images to look at, at most.")] = 200,
) -> None:
    """Write one page about a run or model: pictures, types, curves, and how it is doing."""
    from tusk.cli.report import write_report

    write_report(run, out, data, count)


def doctor(
    json: Annotated[bool, tyro.conf.arg(help="Print it as JSON.")] = False,
) -> None:
    """Look at this machine and installation, and try everything once: ten seconds."""
    from tusk.cli.doctor import examine

    examine(as_json=json)


def presets() -> None:
    """List the presets."""
    from tusk.presets import preset_names

    print("\n".join(preset_names()))


def import_authors(
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(help="A checkpoint that the authors released.")],
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(help="The model file to write (.safetensors).")],
    preset: Annotated[str, tyro.conf.arg(help="The dataset that it was trained on.")] = "mnist-hard",
) -> None:
    """Turn a checkpoint of the paper's authors into a tusk model."""
    from tusk.presets import load_config

    paper = load_config(f"{preset.partition('/')[0]}/paper")
    if out.suffix != ".safetensors":
        raise UsageError(str(out), "a model file ends in .safetensors", f"write to {out.with_suffix('.safetensors')}")
    prepare_torch()
    from tusk.model.authors import network_from_authors, read_authors_file
    from tusk.model.storage import StoredModel, save_model

    network = network_from_authors(
        read_authors_file(file),
        keypoints=paper.model.keypoints,
        kernel=paper.model.window,
        layers=paper.model.decode == "layers",
        name=str(file),
    )
    whole = paper.model_copy(update={"model": network.config})
    save_model(out, StoredModel(network, whole, {"imported from": file.name, "preset": preset}))
    print(out)


_VERBS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "train": train,
    "detect": detect,
    "evaluate": evaluate,
    "report": report,
    "data": data,
    "config": config,
    "presets": presets,
    "doctor": doctor,
    "import-authors": import_authors,
}
# These read their flags themselves: they have verbs of their own, or flags that depend on the preset.
_RAW = {"train", "detect", "evaluate", "config", "data"}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one verb; every fault that a user can mend ends in one sentence and the exit code for it."""
    try:
        _dispatch(list(sys.argv[1:] if argv is None else argv))
    except UserError as error:
        print(f"tusk: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("tusk: stopped.", file=sys.stderr)
        sys.exit(EXIT_STOPPED)
    except BrokenPipeError:
        # Whoever was reading has gone: that is no fault. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except OSError as error:
        print(
            f"tusk: {error.filename or 'system'}: {error.strerror or error}; put that right and run it again.",
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILED)


def _dispatch(args: list[str]) -> None:
    if not args or args[0] in ("--help", "-h", "help"):
        lines = (f"  {name:<16}{(verb.__doc__ or '').splitlines()[0]}\n" for name, verb in _VERBS.items())
        print(_HELP.format(verbs="".join(lines)), end="")
        return
    if args[0] == "--version":
        print(f"tusk {__version__}")
        return
    name, rest = args[0], args[1:]
    if name not in _VERBS:
        raise UsageError(f"'{name}'", "there is no such verb", nearest(name, _VERBS))
    if name in _RAW:
        _VERBS[name](rest)
    else:
        from tusk.cli.flags import run_with_flags

        run_with_flags(_VERBS[name], rest, f"tusk {name}")


def prepare_torch() -> None:
    """Before torch is imported: keep memory, and use every core that this process may run on."""
    from tusk.allocator import keep_memory

    keep_memory()
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def new_folder(wanted: Path) -> Path:
    """`wanted`, or `wanted-2`, `wanted-3` ... where it exists: earlier results are never overwritten."""
    folder, number = wanted, 1
    while folder.exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def make_folder(folder: Path) -> None:
    """Make the folder for results, which must not hold any yet."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(str(folder), "the folder is not empty", "name a new one, or delete it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise UsageError(str(folder), f"the folder cannot be made ({error.strerror})", "name another one") from error
