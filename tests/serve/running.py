"""A server in a thread of the test's own process, and clients that send what a browser never would."""

import http.client
import json
import socket
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

from tusk.data.sources import find_files
from tusk.model.storage import load_model
from tusk.naming import NamesFile
from tusk.serve.pictures import Pictures
from tusk.serve.server import Listen, Server, open_socket
from tusk.serve.workbench import Workbench
from tusk.weights import shipped_models


class Client:
    """One request at a time, each on a connection of its own."""

    def __init__(self, port):
        self.port = port

    def raw(self, method, path, body=None, headers=None):
        """-> status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path, **headers):
        status, _, body = self.raw("GET", path, headers=headers)
        return status, json.loads(body)

    def post(self, path, values=None, **headers):
        body = json.dumps(values if values is not None else {})
        status, _, body = self.raw("POST", path, body, {"content-type": "application/json", **headers})
        return status, json.loads(body)

    def send(self, path, content, name="a.png", **headers):
        """A picture, as a form of a browser."""
        body, kind = form(content, name)
        status, _, body = self.raw("POST", path, body, {"content-type": kind, **headers})
        return status, json.loads(body)

    def bytes(self, content, patience=5.0, *, ends=False):
        """Any bytes at all -> all that comes back. ends: and nothing more will come from here."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=patience) as line:
            received = b""
            try:
                line.sendall(content)
                if ends:
                    line.shutdown(socket.SHUT_WR)
                while part := line.recv(65536):
                    received += part
            except OSError:
                pass
            return received


def form(content, name="a.png"):
    """-> the body of a form with one file, and its content type."""
    mark = uuid.uuid4().hex
    head = f'--{mark}\r\nContent-Disposition: form-data; name="picture"; filename="{name}"\r\n\r\n'
    return head.encode() + content + f"\r\n--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


def make_bench(folder, pictures=None, model=None, names=None):
    stored = load_model(shipped_models()["mnist-hard"]) if model is None else model
    source = None if pictures is None else find_files(str(pictures))
    return Workbench(stored, "the model", NamesFile(names or Path(folder) / "names.json", stored), Pictures(source))


@contextmanager
def running(bench, **listen):
    """A server on a free port -> its client; `client.server` is the server itself."""
    wanted = Listen(**{"port": 0, **listen})
    server = Server(bench, wanted, open_socket(wanted))
    thread = threading.Thread(target=server.run)
    thread.start()
    client = Client(server.rules.port)
    client.server, client.bench = server, bench
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", client.port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield client
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()
