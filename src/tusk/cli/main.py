"""The command line: one verb, one file. Nothing heavy is imported before its verb runs."""

from __future__ import annotations

import codecs
import importlib
import io
import os
import sys
from collections.abc import Sequence

from tusk import __version__
from tusk.errors import EXIT_FAILED, EXIT_STOPPED, UsageError, UserError, nearest, visible

_HELP = """\
tusk finds the recurring things in unlabelled images: where they are and which are of the same type.

usage: tusk VERB [flags]          tusk VERB --help tells a verb's flags

verbs
{verbs}
flags
  --help      this text
  --version   the version
"""
# Verb -> what it does. The verb's file has a function `run`, which takes the words after the verb.
VERBS = {
    "demo": "Learn handwritten digits from scratch in a few minutes, without a label, and show what was found.",
    "preview": "Look at pictures without learning: how large things are, how many, and on what they lie.",
    "train": "Learn from a folder of pictures or a named dataset, without labels.",
    "detect": "Find the things that a model has learnt in pictures: points, types, scores, masks.",
    "serve": "Show it in the browser on this machine: pictures, types, names, corrections by clicks.",
    "names": "Name, merge, split and hide the types of a model; what is said holds for all other verbs.",
    "evaluate": "Measure a model on a dataset with known truth, beside the paper's figures.",
    "report": "Write one page about a run or model: pictures, types, curves, and how it is doing.",
    "export": "Write what was detected for other tools: COCO, YOLO, CVAT, Label Studio, ONNX and more.",
    "data": "List, fetch, make and describe datasets.",
    "config": "Show the whole configuration that a preset, a YAML file and flags give together, as YAML.",
    "presets": "List the presets.",
    "doctor": "Examine this machine and installation, and try everything once: ten seconds.",
    "import-authors": "Turn a checkpoint of the paper's authors into a tusk model.",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one verb; every fault that a user can mend ends in one sentence and the exit code for it."""
    _let_any_name_out()
    try:
        _dispatch(list(sys.argv[1:] if argv is None else argv))
    except UserError as error:
        if not error.is_said:
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
            visible(f"tusk: {error.filename or 'system'}: {error.strerror or error}; put that right and run it again."),
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILED)


def _let_any_name_out() -> None:
    """Printing the path of a result never fails: bytes that are no text go out as they are, for other commands to use;
    what the output's encoding does not have is escaped."""

    def encode(error: UnicodeError) -> tuple[str | bytes, int]:
        try:
            return codecs.lookup_error("surrogateescape")(error)
        except UnicodeError:
            return codecs.lookup_error("backslashreplace")(error)

    codecs.register_error("tusk-any-name", encode)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="tusk-any-name")


def _dispatch(args: list[str]) -> None:
    if not args or args[0] in ("--help", "-h", "help"):
        print(_HELP.format(verbs="".join(f"  {name:<16}{words}\n" for name, words in VERBS.items())), end="")
        return
    if args[0] == "--version":
        print(f"tusk {__version__}")
        return
    name, rest = args[0], args[1:]
    if name not in VERBS:
        raise UsageError(f"'{name}'", "there is no such verb", nearest(name, VERBS))
    importlib.import_module(f"tusk.cli.{name.replace('-', '_')}").run(rest)
