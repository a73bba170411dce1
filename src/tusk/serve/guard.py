"""What every request must pass before anything else looks at it: host, origin, token, size, and a free place.

A page of any other site can make a browser send requests to this machine. It cannot choose their Host and Origin: those
tell. The body is read here, up to its limit and into memory: nothing behind this ever gets more, or waits for a sender
who is slow on purpose.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tusk.serve.jobs import RETRY_AFTER, BusyError, Jobs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "tusk-token"
_SMALL = 1 << 20  # bytes of a body that holds no picture
_SLOW = 60.0  # seconds that a body may take
_IDLE = 0.5  # seconds without a byte, of a body that nobody wants
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)


@dataclass(frozen=True)
class Rules:
    """Who may come, and with how much."""

    port: int
    token: str | None = None  # whoever has none is refused, where there is one
    hosts: frozenset[str] = frozenset({"localhost"})  # names of this machine; addresses need none
    local: bool = True  # only this machine's own addresses
    most_bytes: int = 32 << 20
    pictures: frozenset[str] = field(default=frozenset({"/api/detect", "/api/pictures"}))  # paths that take a picture

    def allows_host(self, host: str) -> bool:
        """By name only what is ours: a name of somebody else's may be made to point at this machine (DNS rebinding)."""
        name, port = _split_host(host)
        if name is None or port not in (None, self.port):
            return False
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name.lower().rstrip(".") in self.hosts
        return address.is_loopback or not self.local


class RefusedError(Exception):
    """A request that ends here."""

    def __init__(self, status: int, why: str, *extra: tuple[bytes, bytes]) -> None:
        super().__init__(why)
        self.status, self.why, self.extra = status, why, extra


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: App, rules: Rules, jobs: Jobs) -> None:
        self._app, self._rules, self._jobs = app, rules, jobs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message.get("headers", ())}
                new = [pair for pair in _HEADERS if pair[0] not in known]
                message = {**message, "headers": [*message.get("headers", ()), *new]}
            await send(message)

        try:
            headers = _headers(scope)
            self._check(scope, headers)
            if scope["method"] in ("GET", "HEAD"):
                await self._app(scope, _nothing(receive), secured)
            elif scope["path"] in self._rules.pictures:
                with self._jobs.place():
                    await self._with_body(scope, headers, receive, secured, self._rules.most_bytes)
            else:
                await self._with_body(scope, headers, receive, secured, _SMALL)
        except BusyError:
            await _drain(receive, self._rules.most_bytes)
            busy = RefusedError(503, "all places are taken; come again", (b"retry-after", b"%d" % RETRY_AFTER))
            await _answer(secured, busy)
        except RefusedError as refused:
            if refused.status == 413:
                await _drain(receive, self._rules.most_bytes)
            await _answer(secured, refused)

    def _check(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> None:
        rules = self._rules
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not rules.allows_host(hosts[0].decode("latin-1")):
            raise RefusedError(421, "this server does not answer under that name")
        for origin in headers.get(b"origin", []):
            parts = urlsplit(origin.decode("latin-1"))
            if parts.scheme != "http" or parts.netloc.lower() != hosts[0].decode("latin-1").lower():
                raise RefusedError(403, "the request comes from a page of another site")
        if headers.get(b"sec-fetch-site", [b"none"])[0] in (b"cross-site", b"same-site") and not _opens_page(headers):
            raise RefusedError(403, "the request comes from a page of another site")
        if scope["method"] not in ("GET", "HEAD", "POST", "DELETE"):
            raise RefusedError(405, "there is no such method here")
        if rules.token is not None and not _has_token(scope, headers, rules.token):
            raise RefusedError(401, "open the address that 'tusk serve' printed: it has a token in it")

    async def _with_body(
        self, scope: Scope, headers: dict[bytes, list[bytes]], receive: Receive, send: Send, most: int
    ) -> None:
        size = headers.get(b"content-length", [b"0"])[0]
        too_large = RefusedError(413, f"the body is larger than {most:,} bytes", (b"connection", b"close"))
        if not size.isdigit() or len(size) > 15:
            raise RefusedError(400, "its length is no number", (b"connection", b"close"))
        if int(size) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(_SLOW):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise RefusedError(408, "the body came too slowly", (b"connection", b"close")) from None
        await self._app(scope, _once(bytes(body), receive), send)


async def _drain(receive: Receive, most: int) -> None:
    """Read what is being sent and throw it away: a sender whose line is cut before it is done never sees the answer.

    Only so much, and from nobody who waits for the answer first.
    """
    try:
        while most > 0:
            async with asyncio.timeout(_IDLE):
                message = await receive()
            most -= len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return
    except TimeoutError:
        return


def _once(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, then whatever comes."""
    waiting = [body]

    async def read() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return read


def _nothing(receive: Receive) -> Receive:
    """No body: that of a GET means nothing."""
    return _once(b"", receive)


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def _opens_page(headers: dict[bytes, list[bytes]]) -> bool:
    """A link on another site may lead to the page itself; it learns nothing by that."""
    return headers.get(b"sec-fetch-mode") == [b"navigate"] and headers.get(b"sec-fetch-dest") == [b"document"]


def _split_host(host: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None, None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return None, None
    return name, port


def _has_token(scope: Scope, headers: dict[bytes, list[bytes]], token: str) -> bool:
    given = [value.removeprefix(b"Bearer ") for value in headers.get(b"authorization", [])]
    for line in headers.get(b"cookie", []):
        try:
            cookie = SimpleCookie(line.decode("latin-1")).get(COOKIE)
        except CookieError:
            continue
        given += [] if cookie is None else [cookie.value.encode("latin-1", "replace")]
    if scope["method"] == "GET" and scope["path"] == "/":
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given += [value.encode("latin-1", "replace") for value in query.get("token", [])]
    return any(hmac.compare_digest(one, token.encode()) for one in given)


async def _answer(send: Send, refused: RefusedError) -> None:
    body = json.dumps({"error": refused.why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *refused.extra]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
