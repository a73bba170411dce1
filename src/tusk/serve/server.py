"""The server's process: where it listens, and how it ends."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

import uvicorn

from tusk.errors import UsageError
from tusk.serve.app import make_app
from tusk.serve.guard import App, Guard, Rules
from tusk.serve.jobs import Jobs
from tusk.serve.workbench import Workbench

_DRAWINGS = 64  # pictures, crops and tables that wait at most
_PATIENCE = 10  # seconds for requests under way when the server stops
_CONNECTIONS = 512


@dataclass(frozen=True)
class Listen:
    """Where to listen, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    names: tuple[str, ...] = ()  # by which this machine may be called, beside its addresses
    jobs: int = 8
    most_bytes: int = 32 << 20

    @property
    def is_local(self) -> bool:
        """Whether only this machine can come."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def open_socket(listen: Listen) -> socket.socket:
    """The port is taken before the seconds that anything else needs; 0 is any that is free."""
    try:
        family = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((listen.host, listen.port), family=family, backlog=256)
    except (OSError, OverflowError) as error:
        why = f"nothing can listen there ({getattr(error, 'strerror', None) or error})"
        raise UsageError(f"{listen.host}:{listen.port}", why, "name another --port or --host") from error


def rules_of(listen: Listen, port: int) -> Rules:
    """Whoever comes from another machine needs a token; one is made where none was given."""
    token = listen.token or (None if listen.is_local else secrets.token_urlsafe(24))
    hosts = {"localhost", *(name.lower() for name in listen.names)}
    if not listen.is_local:
        hosts |= {listen.host.lower(), socket.gethostname().lower()}
    return Rules(port, token, frozenset(hosts), listen.is_local, listen.most_bytes)


def address(listen: Listen, rules: Rules) -> str:
    """What to open in a browser."""
    host = "127.0.0.1" if listen.host in ("0.0.0.0", "::") else listen.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{rules.port}/" + ("" if rules.token is None else f"?token={rules.token}")


class Server:
    """One session. What is under way when it is stopped is answered; what waits is not begun."""

    def __init__(self, bench: Workbench, listen: Listen, opened: socket.socket) -> None:
        self.rules = rules_of(listen, int(opened.getsockname()[1]))
        self.address = address(listen, self.rules)
        self.jobs, self._drawing = Jobs(listen.jobs), Jobs(_DRAWINGS, threads=2)
        self._opened = opened
        app: App = Guard(make_app(bench, self.jobs, self._drawing, self.rules), self.rules, self.jobs)
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=_PATIENCE,
                limit_concurrency=_CONNECTIONS,
            )
        )

    def run(self) -> None:
        """Until Ctrl-C, SIGTERM or `stop`."""
        try:
            with self._opened:
                self._server.run(sockets=[self._opened])
        finally:
            self.jobs.close()
            self._drawing.close()

    def stop(self) -> None:
        """From another thread."""
        self._server.should_exit = True


class _Uvicorn(uvicorn.Server):
    """Ends well on a signal: that is how a server is meant to end, not a fault."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are the main thread's
            return
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal gives them
        self.force_exit = self.should_exit
        self.should_exit = True
