"""The server: predictions, learnt pictures, and everything it refuses."""

import http.client
import io
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from colours import new_picture
from kshot.errors import KshotError
from kshot.pictures import live, serve
from kshot.pictures.head import PictureHead, mean_norm
from kshot.pictures.serve import MOST_BYTES, check_binding
from serving import Server, ask, killable

TOKEN = "a-token-that-is-long-enough"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def head(shades, fit, tmp_path):
    fit(shades).head.save(tmp_path / "head.safetensors")
    return tmp_path / "head.safetensors"


@pytest.fixture
def server(head):
    with closing(Server(head)) as started:
        yield started


def post(server, path, content=None, **headers):
    """Status and content of the answer."""
    status, _, said = ask(server.port, "POST", path, content, **headers)
    return status, said


def get(server, path, **headers):
    status, _, said = ask(server.port, "GET", path, **headers)
    return status, said


def assert_refused(status, words, answer):
    assert (answer[0], words in answer[1]["error"]) == (status, True), answer


def add_red(server, seed):
    return post(server, "/api/shots?label=red", new_picture("red", seed))[0]


def shots(head):
    return PictureHead.load(head).shots.counts.tolist()


def assert_fitted_on_its_shots(head):
    """The head on disk is the one that fitting the same shots and names gives."""
    saved = PictureHead.load(head)
    constants = {"logit_scale": saved.about.logit_scale, "anchor_scale": mean_norm(saved.about.text_norms)}
    again = replace(saved.shots, constants=constants).fit(type(saved.head)(**saved.head.get_params()))
    np.testing.assert_array_equal(saved.head.coef_, again.coef_)


def test_predict_and_add(server, head):
    """Whoever has the old file open, or kills the server, has the old head or the new one."""
    content, before = new_picture("green", 1), head.read_bytes()
    status, said = post(server, "/api/predict", content)
    assert (status, said["answer"]) == (200, "green")
    assert {shot["label"] for shot in said["nearest"]} == {"green"}
    with head.open("rb") as old:
        status, about = post(server, "/api/shots?label=green", content)
        assert (status, about["shots"]) == (200, [4, 5, 4])
        assert old.read() == before
    assert shots(head) == [4, 5, 4]
    assert_fitted_on_its_shots(head)
    assert_refused(400, "this picture is a shot of green already.", post(server, "/api/shots?label=green", content))


def bomb(megapixels=150):
    """A PNG of a few kilobytes that unfolds to many pixels."""
    out = io.BytesIO()
    Image.new("1", (10_000, megapixels * 100)).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [(bomb(), "120,000,000"), (b"plain text", "not a readable picture"), (b"", "empty"), (b"GIF89a", "not a readable")],
    ids=["bomb", "text", "empty", "stub"],
)
def test_what_is_no_picture_is_refused(server, head, content, words):
    kept = head.read_bytes()
    for path in ("/api/predict", "/api/shots?label=red"):
        assert_refused(400, words, post(server, path, content))
    assert head.read_bytes() == kept


def test_a_picture_of_48_megapixels_is_answered(server):
    """As phones take them: a JPEG that lies on its side by its EXIF."""
    rng, out = np.random.default_rng(0), io.BytesIO()
    grain = rng.integers(0, 40, (600, 800, 3), dtype=np.uint8)
    picture = Image.fromarray(grain + np.array([200, 0, 0], np.uint8)).resize((8000, 6000), Image.Resampling.NEAREST)
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(out, "JPEG", quality=80, exif=exif)
    status, said = post(server, "/api/predict", out.getvalue())
    assert (status, said["top"][0]["name"]) == (200, "red")


def test_uploads_are_limited_by_what_they_declare_and_by_what_they_send(server, monkeypatch):
    assert_refused(413, "20 MB", post(server, "/api/predict", Content_Length=str(MOST_BYTES + 1)))
    monkeypatch.setattr(serve, "MOST_BYTES", 1000)
    assert post(server, "/api/predict", iter([b"x" * 600, b"y" * 600]))[0] == 413


def test_an_unknown_label_is_refused_and_no_path_reaches_the_disk(server, tmp_path):
    before = set(tmp_path.rglob("*"))
    for label in ("gren", "..%2F..%2Fred", "%00", "red%2F..%2Fx"):
        assert post(server, f"/api/shots?label={label}&name=../../x", new_picture("green", 1))[0] == 400
    for path in ("/../head.safetensors", "/%2e%2e/etc/passwd", "/page.js/../../live.py", "//etc/passwd"):
        assert get(server, path)[0] == 404
    assert set(tmp_path.rglob("*")) == before


OTHER_SITES = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Sec_Fetch_Site": "cross-site"},
)


def test_other_sites_are_refused(server, head):
    kept, content = head.read_bytes(), new_picture("red", 1)
    for headers in OTHER_SITES:
        for path in ("/api/predict", "/api/shots?label=red"):
            assert post(server, path, content, **headers)[0] == 403
        assert get(server, "/api/head", **headers)[0] == 403
    assert head.read_bytes() == kept
    own = {"Origin": server.url, "Sec_Fetch_Site": "same-origin"}
    assert post(server, "/api/predict", content, **own)[0] == 200


def test_every_answer_has_the_protective_headers(server):
    for path in ("/", "/page.js", "/api/head", "/nowhere", "/api/shots?label=gren"):
        _, headers, _ = ask(server.port, "GET", path)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_beyond_loopback_a_token_is_needed(head):
    with pytest.raises(KshotError, match="give a token"):
        check_binding("0.0.0.0", None)
    with pytest.raises(KshotError, match="at least 16"):
        check_binding("0.0.0.0", "short")
    check_binding("0.0.0.0", TOKEN)
    content = new_picture("green", 1)
    with closing(Server(head, host="0.0.0.0", token=TOKEN)) as server:
        assert post(server, "/api/predict", content)[0] == 401
        assert get(server, "/api/head", Authorization="Bearer wrong")[0] == 401
        assert post(server, "/api/predict", content, Host="my-machine:80", **BEARER)[0] == 200


def test_strangers_change_nothing(head):
    with closing(Server(head, token=TOKEN)) as server:
        content = new_picture("red", 1)
        assert post(server, "/api/shots?label=red", content)[0] == 401
        assert post(server, "/api/shots?label=red", content, Origin="https://evil.example", **BEARER)[0] == 403
        assert get(server, "/api/shots?label=red", **BEARER)[0] == 405


def test_a_token_comes_from_a_file_or_the_environment_and_else_is_new(tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert serve.read_token(tmp_path / "token", "another-token-of-length") == TOKEN
    assert serve.read_token(None, TOKEN) == TOKEN
    first, second = (serve.read_token(None, None) for _ in range(2))
    assert first != second
    check_binding("0.0.0.0", first)
    with pytest.raises(KshotError, match="cannot be read"):
        serve.read_token(tmp_path / "absent", None)


def test_connections_are_limited_and_half_sent_requests_keep_nobody_out(server):
    opened = []
    try:
        for _ in range(serve.MOST_CONNECTIONS - 2):
            opened.append(socket.create_connection(("127.0.0.1", server.port)))
            opened[-1].sendall(b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert post(server, "/api/predict", new_picture("red", 1))[0] == 200
        opened += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        assert get(server, "/api/head")[0] == 503
    finally:
        for one in opened:
            one.close()
    wait_until(lambda: get(server, "/api/head")[0] == 200)


def test_who_never_ends_a_request_is_disconnected(server, monkeypatch):
    """Headers that do not end, on a new connection and on one answered before; a picture that does not come."""
    monkeypatch.setattr(serve, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(serve, "BODY_SECONDS", 0.3)
    begun = b"GET /api/head HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as slow:
        slow.sendall(begun)
        assert slow.recv(1) == b""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as slow:
        slow.sendall(begun + b"\r\n" + begun)
        answer = b"".join(iter(lambda: slow.recv(4096), b""))
        assert answer.count(b"HTTP/1.1 200") == 1
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as slow:
        slow.sendall(b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nabc")
        assert b"408" in slow.recv(100)


def wait_until(reached):
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_hundred_requests_of_sixteen_clients(server):
    contents = {colour: new_picture(colour, 1) for colour in ("red", "green", "blue")}

    def answer(colour):
        return post(server, "/api/predict", contents[colour])[1]["top"][0]["name"]

    sent = [*contents] * 67
    with ThreadPoolExecutor(16) as clients:
        assert list(clients.map(answer, sent)) == sent


def test_two_servers_of_one_head_lose_no_shot(server, head):
    with closing(Server(head)) as second:
        assert add_red(server, 1) == 200
        kept = head.read_bytes()
        refused = post(second, "/api/shots?label=green", new_picture("green", 1))
        assert_refused(409, "another program", refused)
        assert_refused(409, "Restart", refused)
        assert head.read_bytes() == kept
        assert get(second, "/api/head")[1]["shots"] == [4, 4, 4]
        assert add_red(server, 2) == 200
    assert shots(head) == [4, 4, 6]


def test_a_head_file_that_was_moved_or_fitted_again_is_not_overwritten(server, head, shades, fit, tmp_path):
    head.rename(tmp_path / "elsewhere.safetensors")
    assert add_red(server, 1) == 409
    assert not head.exists()
    (tmp_path / "elsewhere.safetensors").rename(head)
    assert add_red(server, 1) == 200
    fit(shades).head.save(head)
    fitted = head.read_bytes()
    assert add_red(server, 2) == 409
    assert head.read_bytes() == fitted
    assert not list(tmp_path.glob(".tmp-*"))


@pytest.mark.slow
def test_killed_while_adding_the_head_stays_loadable(head):
    rng = np.random.default_rng(0)
    sizes = [12]
    for round in range(5):
        process, port = killable(head)
        added = threading.Event()

        def add(round=round, port=port, added=added):
            try:
                for seed in range(1000 * round + 1, 1000 * (round + 1)):
                    assert ask(port, "POST", "/api/shots?label=red", new_picture("red", seed))[0] == 200
                    added.set()
            except (OSError, http.client.HTTPException):
                return

        adding = threading.Thread(target=add)
        adding.start()
        try:
            assert added.wait(180)
            time.sleep(rng.uniform(0, 0.2))
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        adding.join()
        sizes.append(sum(shots(head)))
    assert np.diff(sizes).min() > 0


def test_a_picture_with_another_name_is_moved(head, shades, fit):
    """As a labelling program corrects an answer; a class keeps its last picture."""
    fit(shades, method="gda_alpha1").head.save(head)
    content = new_picture("red+blue", 1)
    with closing(Server(head)) as server:
        assert post(server, "/api/shots?label=red", content)[1]["shots"] == [4, 4, 5]
        status, about = post(server, "/api/shots?label=violet&new=1", content)
        assert (status, about["classes"], about["shots"]) == (200, ["blue", "green", "red", "violet"], [4, 4, 4, 1])
        assert_fitted_on_its_shots(head)
        assert_refused(400, "violet would be left without", post(server, "/api/shots?label=red", content))


def test_a_class_of_one_picture_is_refused_where_the_head_needs_more(server):
    refused = post(server, "/api/shots?label=violet&new=1", new_picture("red+blue", 1))
    assert_refused(400, "violet: LOO blend needs 2 pictures", refused)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("label=gren", "&new=1"),
        ("new=1", "needs a name"),
        ("label=a%0Ab&new=1", "one line"),
        (f"label={'x' * 201}&new=1", "200"),
    ],
)
def test_names_that_are_none_are_refused(server, head, query, words):
    kept = head.read_bytes()
    assert_refused(400, words, post(server, f"/api/shots?{query}", new_picture("green", 1)))
    assert head.read_bytes() == kept


def test_predictions_do_not_wait_for_a_fit(server, monkeypatch):
    begun, go_on, learn = threading.Event(), threading.Event(), live.learn_picture

    def slow(*given):
        begun.set()
        assert go_on.wait(60)
        return learn(*given)

    monkeypatch.setattr(live, "learn_picture", slow)
    with ThreadPoolExecutor(2) as clients:
        added = [clients.submit(add_red, server, seed) for seed in (1, 2)]
        assert begun.wait(60)
        assert post(server, "/api/predict", new_picture("red", 3))[0] == 200
        go_on.set()
        assert [one.result() for one in added] == [200, 200]
    assert get(server, "/api/head")[1]["shots"] == [4, 4, 6]
