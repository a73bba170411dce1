"""Three hundred requests that nobody should send: one sentence each, no traceback, and nothing written anywhere."""

import io
import random
import urllib.parse

import pytest
from PIL import Image

from tests.detection.bright import blob, bright_model
from tests.serve.running import make_bench, running

TRAVERSALS = [
    "../secret.txt", "../../etc/passwd", "..%2fsecret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt",
    "..%252fsecret.txt", "%252e%252e%252fsecret.txt", "..\\secret.txt", "..%5csecret.txt", "....//secret.txt",
    "..;/secret.txt", "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "C:\\secret.txt", "C:%5csecret.txt",
    "..%c0%afsecret.txt", "..%00/secret.txt", "0/../../secret.txt", "~/secret.txt", "file:///etc/passwd",
    "0%00.png", "%ff%fe", "..%ef%bc%8fsecret.txt",
]  # fmt: skip

FILE = b'--b\r\nContent-Disposition: form-data; name="picture"; filename="a"\r\n\r\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    (folder / "secret.txt").write_text("SECRET")
    pictures = folder / "pictures"
    pictures.mkdir()
    for number in range(2):
        Image.fromarray(blob(64, 64, 20, 30, 3)).save(pictures / f"{number}.png")
    Image.fromarray(blob(64, 64, 20, 30, 3)).save(folder / "outside.png")
    (pictures / "link.png").symlink_to(folder / "outside.png")
    return folder


@pytest.fixture(scope="module")
def model():
    return bright_model()


@pytest.fixture
def client(place, model):
    with running(make_bench(place / "names", place / "pictures", model), most_bytes=200_000) as client:
        yield client


def test_no_path_leads_out_of_the_folder(client):
    shapes = ("/{}", "/static/{}", "/api/pictures/{}", "/api/pictures/{}/image", "/api/pictures/0/crops/{}",
              "/api/download/{}", "/api/types/{}/prototype.png")  # fmt: skip
    for form in TRAVERSALS:
        for shape in shapes:
            line = f"GET {shape.format(form)} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nConnection: close\r\n\r\n"
            answer = client.bytes(line.encode())
            assert answer.split(b" ", 2)[1] in (b"400", b"404", b"405", b"422"), (line, answer[:200])
            assert b"SECRET" not in answer and b"root:" not in answer


def test_a_link_out_of_the_folder_is_not_followed(client):
    names = [one["name"] for one in client.get("/api/pictures")[1]]
    assert names == ["0.png", "1.png"]
    assert client.bench.pictures.left_out == 1


def test_names_of_dropped_files_are_names_alone(client):
    content = io.BytesIO()
    Image.fromarray(blob(64, 64, 20, 30, 3)).save(content, "PNG")
    for name in (
        "../../evil.png",
        "..\\..\\evil.png",
        "/etc/cron.d/evil",
        "<img src=x onerror=alert(1)>",
        "",
        "a" * 1000,
    ):
        status, picture = client.send(
            "/api/pictures", content.getvalue(), name=urllib.parse.quote(name, safe="/\\<>=() ")
        )
        assert status == 200 and "/" not in picture["name"] and "\\" not in picture["name"], picture
        assert 0 < len(picture["name"]) <= 200
    status, answer = client.send("/api/pictures", content.getvalue(), name="a" * 50_000)
    assert status == 400 and set(answer) == {"error"}


def hostile(rng):
    """One request, as bytes without the first line's end."""
    paths = ["/", "/api/detect", "/api/pictures", "/api/pictures/0/points", "/api/names/set", "/api/names/merge",
             "/api/names/teach", "/api/names/correct", "/api/names/split", "/api/types", "/api/download/tables",
             "/openapi.json", "/api/session", "/static/page.js", "/api/pictures/99999999999999999999",
             "/api/types/-1/prototype.png"]  # fmt: skip
    bodies = [
        b"", b"{", b"null", b"[]", b"\xff" * 100, b'{"type": 1e400, "name": 3}', b'{"type": -1, "name": "x"}',
        b'{"type": 99999999999999999999999, "name": "x"}', b"[" * 50_000, b'{"type": 0, "name": "\\ud800"}',
        b'{"into": 0, "other": 0}', b'{"points": [], "type": 0}', b'{"points": [{"picture": 5, "instance": 5}]}',
        b'{"picture": 0, "removed": [99999]}', b'{"picture": 0, "added": [{"x": NaN, "y": 1, "type": 0}]}',
        b'{"picture": 0, "added": [{"x": 1e308, "y": 1, "type": 0}]}', b'{"type": 77}', b"a" * 1000,
        b'{"type": 0, "name": "' + b"x" * 3000 + b'"}', b'{"type": 0, "name": "\\u0000"}',
        FILE + b"\x89PNG\r\n\x1a\n\r\n--b--\r\n",
        b"--b\r\nContent-Disposition: form-data; name=\"picture\"\r\n\r\ntext\r\n--b--\r\n",
        b"--b\r\n" * 1000, FILE.replace(b"picture", b"other") + b"\r\n--b--\r\n",
    ]  # fmt: skip
    kinds = ["application/json", "multipart/form-data; boundary=b", "multipart/form-data", "text/plain", "\x01", ""]
    methods = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "TRACE", "BREW", "GET"]
    queries = [
        "",
        "?min_gain=nan",
        "?min_gain=inf",
        "?keypoints=0",
        "?keypoints=" + "9" * 400,
        "?%",
        "?a" * 500,
        "?longest=-1",
    ]
    body = rng.choice(bodies)
    length = rng.choice([len(body), len(body), len(body), len(body), -1, 10**9, "x", len(body) + 5])
    return (
        f"{rng.choice(methods)} {rng.choice(paths)}{rng.choice(queries)} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{{port}}\r\nConnection: close\r\nContent-Type: {rng.choice(kinds)}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ), body


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_three_hundred_hostile_requests(client, place, capfd):
    client.get("/api/pictures/0/points")
    client.post("/api/names/set", {"type": 0, "name": "kept"})
    before = listing(place)
    rng = random.Random(0)
    counts = {}
    for _ in range(300):
        head, body = hostile(rng)
        answer = client.bytes(head.format(port=client.port).encode("latin-1") + body, patience=3, ends=True)
        status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/1.1 ") else b"none"
        counts[status] = counts.get(status, 0) + 1
        assert not status.startswith(b"5"), (head, body[:100], answer[:300])
        assert b"Traceback" not in answer and b'File "' not in answer
    assert counts[b"422"] > 10 and counts[b"405"] > 10, counts
    assert listing(place) == before
    assert client.get("/api/health")[1]["status"] == "ok"
    said = capfd.readouterr()
    assert "Traceback" not in said.err and "Traceback" not in said.out


@pytest.mark.parametrize("kind", ["not a picture", "cut short", "many pixels"])
def test_pictures_that_are_none(client, kind):
    content = io.BytesIO()
    Image.fromarray(blob(64, 64, 20, 30, 3)).save(content, "PNG")
    whole = content.getvalue()
    if kind == "not a picture":
        whole = b"<svg/>" * 100
    elif kind == "cut short":
        whole = whole[: len(whole) // 2]
    else:
        whole = whole[:16] + (100_000).to_bytes(4, "big") * 2 + whole[24:]
    for path in ("/api/detect", "/api/pictures"):
        status, answer = client.send(path, whole, name="bad.png")
        assert status == 415 and answer["error"].startswith("bad.png: "), answer
    assert len(client.get("/api/pictures")[1]) == 2
