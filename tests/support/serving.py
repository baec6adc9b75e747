"""A served head with the stand-in encoder: in this process, or in one that can be killed."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from colours import ColourEncoder
from kshot.pictures.live import LiveHead
from kshot.pictures.serve import make_app, make_server

HERE = Path(__file__).resolve().parent


class Server:
    """uvicorn in a thread on a free port."""

    def __init__(self, head: Path, host: str = "127.0.0.1", token: str | None = None):
        self.server = make_server(make_app(LiveHead(head, ColourEncoder()), host, token), "127.0.0.1", 0)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        deadline = time.monotonic() + 120
        while not self.server.started:
            assert self.thread.is_alive(), "the server ended before it listened"
            assert time.monotonic() < deadline, "the server did not start in two minutes"
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()


def ask(port: int, method: str, path: str, body: bytes | None = None, **headers: str):
    """Status, headers and content; underscores of header names stand for dashes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, sent)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.headers.get_content_type() == "application/json":
        content = json.loads(content)
    return answer.status, answer.headers, content


def file(name: str, content: bytes) -> dict:
    """What a browser's file chooser is given."""
    return {"name": name, "mimeType": "image/png", "buffer": content}


def killable(head: Path, token: str | None = None) -> tuple[subprocess.Popen, int]:
    """The same in a process of its own, and its port."""
    source = str(HERE.parents[1] / "src")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), source])}
    environment |= {} if token is None else {"KSHOT_TOKEN": token}
    process = subprocess.Popen(
        [sys.executable, "-m", "serving", str(head)], stdout=subprocess.PIPE, text=True, env=environment
    )
    return process, int(process.stdout.readline())


if __name__ == "__main__":
    server = Server(Path(sys.argv[1]), token=os.environ.get("KSHOT_TOKEN"))
    print(server.port, flush=True)
    server.thread.join()
