"""A served head under load: 1,000 pictures from 16 clients to a real `kshot serve` with the small encoder."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks import SMALL
from kshot.pictures.fit import fit_folder
from kshot.pictures.photos import copy_sample

REQUESTS, CLIENTS, ALLOWED = 64 if SMALL else 1000, 16, 10
TOKEN = "a token of the benchmark"


def predict(port: int, picture: bytes) -> tuple[str, float]:
    """The answer and the seconds of one request on a connection of its own."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/api/predict", picture, {"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"kshot serve answered {answer.status}: {text:.200}")
    return json.loads(text)["answer"], time.perf_counter() - start


def load(port: int, pictures: Sequence[bytes]) -> list[float]:
    """The seconds of every request, each of which got the answer that its picture had alone."""
    alone = [predict(port, picture)[0] for picture in pictures]
    with ThreadPoolExecutor(CLIENTS) as clients:
        answered = list(clients.map(lambda n: predict(port, pictures[n % len(pictures)]), range(REQUESTS)))
    assert all(answer == alone[n % len(pictures)] for n, (answer, _) in enumerate(answered)), "answers were mixed up"
    return [seconds for _, seconds in answered]


def main() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_sample(folder / "drawings")
        fit_folder(folder / "drawings/photos").head.save(folder / "head.safetensors")
        (folder / "token").write_text(TOKEN)
        pictures = [path.read_bytes() for path in sorted((folder / "drawings/new").glob("*.png"))]
        command = [sys.executable, "-m", "kshot", "serve", folder / "head.safetensors", "--port", str(port)]
        server = subprocess.Popen([*command, "--token-file", folder / "token"], stdout=subprocess.DEVNULL)
        try:
            _until_it_listens(port)
            median, late = np.quantile(load(port, pictures), [0.5, 0.99])
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
    ratio = late / median
    print(f"{REQUESTS} requests from {CLIENTS} clients, all answered: median {1000 * median:.0f} ms")
    print(f"p99 against the median: {ratio:.1f}× (allowed {ALLOWED}×) {'ok' if ratio < ALLOWED else 'MISSED'}")
    return ratio >= ALLOWED and not SMALL


def _until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
