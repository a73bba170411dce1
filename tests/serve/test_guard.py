"""Who may come, and with how much."""

import io
import json
import threading
import time

import pytest
from PIL import Image

from tests.detection.bright import blob, bright_model
from tests.serve.running import form, make_bench, running
from tusk.errors import UsageError
from tusk.serve.guard import Rules
from tusk.serve.server import Listen, address, open_socket, rules_of


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    bench = make_bench(tmp_path_factory.mktemp("names"), model=bright_model())
    with running(bench, most_bytes=200_000, jobs=2) as client:
        yield client


def png(side=64):
    buffer = io.BytesIO()
    Image.fromarray(blob(side, side, 20, 30, 3)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "127.0.0.5"])
def test_own_hosts(client, host):
    assert client.get("/api/health", host=f"{host}:{client.port}")[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "localhost:1", "", "user@localhost", "127.0.0.1.nip.example",
     "192.168.0.7", "0.0.0.0", "localhost/x", "[::", "localhost:99999999", "10.0.0.1"],
)  # fmt: skip
def test_other_hosts_are_refused(client, host):
    """A name of somebody else's that was made to point here (DNS rebinding) is no name of ours."""
    status, answer = client.get("/api/health", host=host)
    assert status in (400, 421), answer


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_posts_from_other_sites_are_refused(client, headers):
    headers = {name: value.format(port=client.port) for name, value in headers.items()}
    before = len(client.bench.names.naming().edits)
    status, answer = client.post("/api/names/set", {"type": 0, "name": "x"}, **headers)
    assert status == 403 and "another site" in answer["error"]
    assert client.raw("OPTIONS", "/api/names/set")[0] == 405
    assert len(client.bench.names.naming().edits) == before


def test_a_link_on_another_site_may_open_the_page(client):
    navigate = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.raw("GET", "/", headers=navigate)[0] == 200
    assert client.raw("GET", "/api/health", headers={**navigate, "sec-fetch-dest": "image"})[0] == 403


def test_bodies_are_limited_before_anything_is_kept(client):
    body, kind = form(b"x" * 300_000)
    status, headers, answer = client.raw("POST", "/api/detect", body, {"content-type": kind})
    assert status == 413 and headers["connection"] == "close" and "200,000" in json.loads(answer)["error"]
    # Without a length, in pieces: counted as they come.
    head = f"POST /api/detect HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nTransfer-Encoding: chunked\r\n"
    pieces = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    assert b" 413 " in client.bytes(f"{head}Content-Type: {kind}\r\n\r\n".encode() + 40 * pieces)
    assert client.post("/api/names/set", {"type": 0, "name": "x" * 1_100_000})[0] == 413
    # Only the length is claimed: refused at once, not when it has come.
    claimed = (
        f"POST /api/detect HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: 99999999999\r\n\r\n"
    ).encode()
    began = time.monotonic()
    assert b" 413 " in client.bytes(claimed)
    assert time.monotonic() - began < 2


def test_more_than_the_places_are_asked_to_come_again(client):
    """Two places; the work in both waits until all others were answered."""
    gate, inside = threading.Event(), threading.Semaphore(0)
    original = client.bench.detect_once

    def slow(*args):
        inside.release()
        assert gate.wait(20)
        return original(*args)

    client.bench.detect_once = slow
    try:
        answers = []
        content = png()
        threads = [
            threading.Thread(target=lambda: answers.append(client.send("/api/detect", content)[0])) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        assert inside.acquire(timeout=10)
        while client.get("/api/health")[1]["jobs"] < 2:
            time.sleep(0.01)
        body, kind = form(content)
        status, headers, _ = client.raw("POST", "/api/detect", body, {"content-type": kind})
        assert status == 503 and int(headers["retry-after"]) >= 1
        gate.set()
        for thread in threads:
            thread.join()
        assert answers == [200, 200]
        assert client.send("/api/detect", content)[0] == 200
    finally:
        gate.set()
        del client.bench.detect_once


def test_every_answer_has_the_headers_that_keep_a_page_safe(client):
    for path in ("/", "/docs", "/static/page.js", "/api/health", "/nothing", "/openapi.json"):
        _, headers, _ = client.raw("GET", path)
        assert "script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        assert "server" not in headers and "access-control-allow-origin" not in headers


def test_a_token_is_needed_where_others_can_come(tmp_path):
    with running(make_bench(tmp_path, model=bright_model()), token="a-long-secret-token") as client:
        assert client.get("/api/health")[0] == 401
        assert client.get("/api/health?token=a-long-secret-token")[0] == 401  # only the page's own address takes it
        assert client.get("/api/health", authorization="Bearer wrong")[0] == 401
        assert client.get("/api/health", authorization="Bearer a-long-secret-token")[0] == 200
        status, headers, _ = client.raw("GET", "/?token=a-long-secret-token")
        cookie = headers["set-cookie"]
        assert status == 200 and "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
        assert client.get("/api/health", cookie=cookie.partition(";")[0])[0] == 200
        assert client.get("/api/health", cookie="tusk-token=wrong")[0] == 401


def test_it_listens_for_this_machine_alone_unless_told_otherwise():
    assert Listen().is_local and rules_of(Listen(), 80).token is None
    other = rules_of(Listen(host="0.0.0.0"), 80)
    assert other.token is not None and len(other.token) > 20 and not other.local
    assert other.allows_host("192.168.0.7:80") and not other.allows_host("evil.example:80")
    assert address(Listen(host="0.0.0.0"), other).endswith(f"?token={other.token}")
    assert Rules(80, hosts=frozenset({"lab"}), local=False).allows_host("LAB:80")
    with pytest.raises(UsageError, match="nothing can listen there"):
        open_socket(Listen(host="256.1.1.1"))
