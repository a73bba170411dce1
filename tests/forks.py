"""Commands in forks of a process that has imported everything: the same command, without seconds of imports each time.

Not for use in pytest's own processes, which have threads: scripts that tests start use it.
"""

import importlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from tusk.cli import main as cli

_HEAVY = (
    "scipy.ndimage", "scipy.optimize", "sklearn.cluster", "sklearn.datasets", "sklearn.decomposition", "torch._dynamo",
    "tusk.api.model", "tusk.api.training", "tusk.report.build",
)  # fmt: skip


def warm_up() -> None:
    """Import what most commands need."""
    for name in _HEAVY:
        importlib.import_module(name)


def start(
    args: list[str], around: Callable[[], AbstractContextManager[object]] = nullcontext, errors: str = os.devnull
) -> int:
    """Run `tusk ARGS` in a fork, within what `around` makes there; its messages go to that file. -> its process id."""
    process = os.fork()
    if process == 0:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666), 2)
        os.dup2(2, 1)
        code = 1
        try:
            with around():
                cli.main(args)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return process


def end(process: int) -> int:
    """How it ended: the exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
