"""The server: predictions, live refits, and everything it refuses."""

import http.client
import io
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from colours import shade
from kshot.errors import KshotError
from kshot.pictures.fit import fit_folder
from kshot.pictures.head import PictureHead
from kshot.pictures.serve import app, connections, guards, live
from kshot.pictures.serve.guards import MOST_BYTES, check_binding
from serving import Server, ask, killable

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def head(shades, colours, tmp_path):
    """With a closed form, so that the tests wait for the server and not for a solver."""
    path = tmp_path / "head.safetensors"
    fit_folder(shades, encoder=colours, method="loo_blend").head.save(path)
    return path


@pytest.fixture
def server(head):
    started = Server(head)
    yield started
    started.close()


@pytest.fixture
def picture(tmp_path):
    """New pictures of a colour, as bytes."""
    rng = np.random.default_rng(7)

    def make(colour="green"):
        shade(tmp_path / "new.png", colour, rng)
        return (tmp_path / "new.png").read_bytes()

    return make


def bomb(megapixels=50):
    """A PNG of a few kilobytes that unfolds to many pixels."""
    out = io.BytesIO()
    Image.new("1", (10_000, megapixels * 100)).save(out, "PNG")
    return out.getvalue()


def test_predict_add_and_download(server, head, picture):
    content = picture("green")
    status, _, said = ask(server.port, "POST", "/api/predict", content)
    assert (status, said["answer"]) == (200, "green")
    assert {shot["label"] for shot in said["nearest"]} == {"green"}
    before = PictureHead.load(head)
    status, _, about = ask(server.port, "POST", "/api/shots?label=green", content)
    assert (status, about["shots"]) == (200, [4, 5, 4])
    _, headers, downloaded = ask(server.port, "GET", "/api/head.safetensors")
    assert downloaded == head.read_bytes()
    assert "attachment" in headers["Content-Disposition"]
    after = PictureHead.load(head)
    assert len(after.shots.y) == len(before.shots.y) + 1
    refitted = type(after.head)(**after.head.get_params())
    refitted.fit(after.shots.X, after.shots.y, text=after.shots.text)
    np.testing.assert_array_equal(after.head.coef_, refitted.coef_)
    status, _, again = ask(server.port, "POST", "/api/shots?label=green", content)
    assert (status, again["error"]) == (400, "this picture is a shot already.")


@pytest.mark.parametrize(
    ("content", "words"),
    [(bomb(), "40,000,000"), (b"plain text", "not a readable picture"), (b"", "empty"), (b"GIF89a", "not a readable")],
    ids=["bomb", "text", "empty", "stub"],
)
def test_what_is_no_picture_is_refused(server, head, content, words):
    kept = head.read_bytes()
    for path in ("/api/predict", "/api/shots?label=red"):
        status, _, said = ask(server.port, "POST", path, content)
        assert status == 400
        assert words in said["error"]
    assert head.read_bytes() == kept


def test_uploads_are_limited(server):
    status, _, said = ask(server.port, "POST", "/api/predict", Content_Length=str(MOST_BYTES + 1))
    assert (status, "20 MB" in said["error"]) == (413, True)


def test_an_unknown_label_is_refused_and_no_path_reaches_the_disk(server, head, picture, tmp_path):
    content = picture()
    before = set(tmp_path.rglob("*"))
    for label in ("gren", "..%2F..%2Fred", "%00", "red%2F..%2Fx"):
        assert ask(server.port, "POST", f"/api/shots?label={label}&name=../../x", content)[0] == 400
    for path in ("/../head.safetensors", "/%2e%2e/etc/passwd", "/page.js/../live.py", "//etc/passwd"):
        assert ask(server.port, "GET", path)[0] == 404
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
    ids=str,
)
def test_other_sites_are_refused(server, head, picture, headers):
    kept = head.read_bytes()
    for path in ("/api/predict", "/api/shots?label=red"):
        assert ask(server.port, "POST", path, picture(), **headers)[0] == 403
    assert ask(server.port, "GET", "/api/head.safetensors", **headers)[0] == 403
    assert head.read_bytes() == kept
    own = {"Origin": server.url, "Sec_Fetch_Site": "same-origin"}
    assert ask(server.port, "POST", "/api/predict", picture(), **own)[0] == 200


def test_every_answer_has_the_protective_headers(server):
    for path in ("/", "/page.js", "/api/head", "/nowhere"):
        _, headers, _ = ask(server.port, "GET", path)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_beyond_loopback_a_token_is_needed(head, picture):
    with pytest.raises(KshotError, match="give a token"):
        check_binding("0.0.0.0", None)
    with pytest.raises(KshotError, match="at least 16"):
        check_binding("0.0.0.0", "short")
    check_binding("0.0.0.0", TOKEN)
    server = Server(head, host="0.0.0.0", token=TOKEN)
    try:
        assert ask(server.port, "POST", "/api/predict", picture())[0] == 401
        assert ask(server.port, "GET", "/api/head", Authorization="Bearer wrong")[0] == 401
        allowed = {"Authorization": f"Bearer {TOKEN}", "Host": "my-machine:80"}
        assert ask(server.port, "POST", "/api/predict", picture(), **allowed)[0] == 200
    finally:
        server.close()


def test_eighty_half_sent_requests_keep_nobody_out_and_end(server, picture, monkeypatch):
    """Headers that never end, without a token in them: the owner is served beside them, and the server hangs up."""
    monkeypatch.setattr(connections, "SECONDS_BETWEEN_LOOKS", 0.2)
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(80)]
    try:
        for one in sockets:
            one.sendall(b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert ask(server.port, "POST", "/api/predict", picture())[0] == 200
        for one in sockets:
            one.settimeout(120)
            assert one.recv(1) == b""
    finally:
        for one in sockets:
            one.close()


def test_a_body_that_never_ends_is_given_up(server, monkeypatch):
    monkeypatch.setattr(guards, "BODY_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as one:
        one.sendall(b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nabc")
        assert one.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_a_storm_of_pictures_is_answered_or_refused_and_the_server_lives(server, picture, monkeypatch):
    monkeypatch.setattr(app, "MOST_WAITING", 2)
    content = picture()
    with ThreadPoolExecutor(12) as clients:
        found = list(clients.map(lambda _: ask(server.port, "POST", "/api/predict", content)[0], range(48)))
    assert set(found) <= {200, 503}
    assert 200 in found
    assert ask(server.port, "POST", "/api/predict", content)[0] == 200


def test_a_token_comes_from_a_file_or_the_environment_and_else_is_new(tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert guards.read_token(tmp_path / "token", "another-token-of-length") == TOKEN
    assert guards.read_token(None, TOKEN) == TOKEN
    first, second = (guards.read_token(None, None) for _ in range(2))
    assert first != second
    check_binding("0.0.0.0", first)
    with pytest.raises(KshotError, match="cannot be read"):
        guards.read_token(tmp_path / "absent", None)


def test_a_thousand_requests_of_sixteen_clients(server, picture):
    contents = [picture(colour) for colour in ("red", "green", "blue")]

    def one(number):
        status, _, said = ask(server.port, "POST", "/api/predict", contents[number % 3])
        return status, said["top"][0]["name"]

    with ThreadPoolExecutor(16) as clients:
        found = list(clients.map(one, range(1000)))
    assert found == [(200, ("red", "green", "blue")[n % 3]) for n in range(1000)]


def test_a_change_never_touches_the_old_file(server, head, picture):
    """Whoever has the file open, a kill included, sees the old head or the new one."""
    before = head.read_bytes()
    with head.open("rb") as old:
        assert ask(server.port, "POST", "/api/shots?label=red", picture("red"))[0] == 200
        assert old.read() == before
    assert head.read_bytes() != before


def test_two_servers_of_one_head_lose_no_shot(server, head, picture):
    second = Server(head)
    try:
        assert ask(server.port, "POST", "/api/shots?label=red", picture("red"))[0] == 200
        kept = head.read_bytes()
        status, _, said = ask(second.port, "POST", "/api/shots?label=green", picture("green"))
        assert (status, "another program" in said["error"], "Restart" in said["error"]) == (409, True, True)
        assert head.read_bytes() == kept
        assert ask(second.port, "GET", "/api/head")[2]["shots"] == [4, 4, 4]
        assert ask(server.port, "POST", "/api/shots?label=red", picture("red"))[0] == 200
    finally:
        second.close()
    assert PictureHead.load(head).shots.counts.tolist() == [4, 4, 6]


@pytest.mark.slow
def test_of_pictures_added_to_two_servers_at_once_no_acknowledged_one_is_lost(server, head, picture):
    contents = [picture("red") for _ in range(6)]
    second = Server(head)

    def add(number):
        port = (server.port, second.port)[number % 2]
        return ask(port, "POST", "/api/shots?label=red", contents[number])[0]

    try:
        with ThreadPoolExecutor(6) as clients:
            found = list(clients.map(add, range(6)))
    finally:
        second.close()
    assert set(found) <= {200, 409}
    assert len(PictureHead.load(head).shots.y) == 12 + found.count(200)


def test_a_head_that_was_fitted_again_is_not_overwritten(server, head, shades, colours, picture, tmp_path):
    (shades / "red" / "3.png").unlink()
    fit_folder(shades, encoder=colours).head.save(head)
    fitted = head.read_bytes()
    assert ask(server.port, "POST", "/api/shots?label=red", picture("red"))[0] == 409
    assert head.read_bytes() == fitted
    assert not list(tmp_path.glob(".tmp-*"))


def test_a_head_file_that_was_moved_is_said_and_may_come_back(server, head, picture, tmp_path):
    head.rename(tmp_path / "elsewhere.safetensors")
    status, _, said = ask(server.port, "GET", "/api/head.safetensors")
    assert (status, "head.safetensors" in said["error"]) == (404, True)
    assert ask(server.port, "POST", "/api/shots?label=red", picture("red"))[0] == 409
    assert not head.exists()
    (tmp_path / "elsewhere.safetensors").rename(head)
    assert ask(server.port, "POST", "/api/shots?label=red", picture("red"))[0] == 200


@pytest.mark.slow
def test_killed_while_adding_the_head_stays_loadable(head, picture):
    rng = np.random.default_rng(0)
    sizes = [12]
    for _ in range(5):
        process, port = killable(head)
        added = threading.Event()

        def add(port=port, added=added):
            try:
                while ask(port, "POST", "/api/shots?label=red", picture("red"))[0] == 200:
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
        sizes.append(len(PictureHead.load(head).shots.y))
    assert np.diff(sizes).min() > 0


def counted(port):
    """The classes of the album with their numbers of pictures."""
    return {one["label"]: one["pictures"] for one in ask(port, "GET", "/api/head")[2]["album"]}


def shown(port, query=""):
    return ask(port, "GET", f"/api/pictures{query}")[2]


def test_pictures_are_listed_moved_removed_and_undone(server, head):
    first = shown(server.port, "?label=green")
    assert (first["total"], {one["label"] for one in first["pictures"]}) == (4, {"green"})
    assert shown(server.port, "?label=green&start=3")["pictures"] == first["pictures"][3:]
    sure = [one["own"] for one in first["pictures"]]
    assert sure == sorted(sure)
    keys = [one["key"] for one in first["pictures"]]
    status, _, about = ask(server.port, "POST", f"/api/shots/move?key={keys[0]}&label=red")
    assert (status, about["shots"], about["undo"]) == (200, [4, 3, 5], "moved a picture to red")
    assert PictureHead.load(head).shots.counts.tolist() == [4, 3, 5]
    assert [one["key"] for one in shown(server.port)["pictures"]] == keys[:1]
    assert ask(server.port, "POST", f"/api/shots/remove?key={keys[0]}")[2]["shots"] == [4, 3, 4]
    for counts in ([4, 3, 5], [4, 4, 4]):
        assert ask(server.port, "POST", "/api/undo")[2]["shots"] == counts
    assert shown(server.port, "?label=green") == first


NONSENSE = {
    "/api/undo": "nothing to undo",
    "/api/shots/remove?key=unheard": "Reload the page",
    "/api/shots/remove": "Reload the page",
    "/api/shots/move?key={0}&label=gren": "green",
    "/api/shots/remove?key={0}&key={1}&key={2}&key={3}": "without a picture",
    "/api/shots/move?key={0}&new=1": "needs a name",
    "/api/classes": "needs a name",
    "/api/classes?label=two%0Alines": "one line",
    f"/api/classes?label={'x' * 201}": "200 letters",
    "/api/classes?label=green": "already",
    "/api/classes/remove?label=gren": "green",
}


def test_changes_that_make_no_sense_are_refused(server, head):
    kept = head.read_bytes()
    keys = [one["key"] for one in shown(server.port, "?label=green")["pictures"]]
    for path, words in NONSENSE.items():
        status, _, said = ask(server.port, "POST", path.format(*keys))
        assert (status, words in said["error"]) == (400, True), said
    assert head.read_bytes() == kept
    assert counted(server.port) == {"blue": 4, "green": 4, "red": 4}


def test_a_class_comes_by_its_name_gets_pictures_and_goes(server, head, picture):
    """The head on disk is the one that fitting the same shots and names gives."""
    status, _, about = ask(server.port, "POST", "/api/classes?label=%20grey%20")
    assert (status, about["classes"], about["shots"]) == (200, ["blue", "green", "red", "grey"], [4, 4, 4, 0])
    assert about["accuracy"] is not None
    saved = PictureHead.load(head)
    assert saved.probabilities(saved.shots.X).shape == (12, 4)
    contents = [picture("red"), picture("green")]
    sizes = "&".join(f"size={len(own)}" for own in contents)
    status, _, about = ask(server.port, "POST", f"/api/shots?label=violet&new=1&{sizes}", b"".join(contents))
    assert (status, about["shots"]) == (200, [4, 4, 4, 0, 2])
    assert about["undo"] == "added the class violet with 2 pictures"
    saved = PictureHead.load(head)
    again = type(saved.head)(**saved.head.get_params())
    again.fit(saved.shots.X, saved.shots.y, text=saved.shots.text, classes=range(5))
    np.testing.assert_array_equal(saved.head.coef_, again.coef_)
    ask(server.port, "POST", "/api/classes/remove?label=red")
    assert counted(server.port) == {"blue": 4, "green": 4, "grey": 0, "violet": 2}
    for _ in range(3):
        status, _, about = ask(server.port, "POST", "/api/undo")
    assert (about["classes"], about["shots"]) == (["blue", "green", "red"], [4, 4, 4])


def test_a_head_that_reads_no_text_says_that_a_name_is_not_enough(shades, colours, tmp_path):
    fit_folder(shades, encoder=colours, method="ncm").head.save(tmp_path / "ncm.safetensors")
    server = Server(tmp_path / "ncm.safetensors")
    try:
        status, _, said = ask(server.port, "POST", "/api/classes?label=grey")
        assert (status, "grey" in said["error"], "needs a picture" in said["error"]) == (400, True, True)
        assert counted(server.port) == {"blue": 4, "green": 4, "red": 4}
    finally:
        server.close()


@pytest.mark.parametrize("sizes", ["size=1", "size=x", "size=-1&size=4", "&".join(["size=0"] * 101)])
def test_sizes_that_do_not_fit_the_body_are_refused(server, sizes):
    status, _, said = ask(server.port, "POST", f"/api/shots?label=red&{sizes}", b"abc")
    assert (status, "sizes" in said["error"]) == (400, True)


def test_one_unreadable_picture_of_several_is_named_and_nothing_is_added(server, picture):
    contents = [picture("red"), b"text"]
    sizes = "&".join(f"size={len(own)}" for own in contents)
    status, _, said = ask(server.port, "POST", f"/api/shots?label=red&{sizes}", b"".join(contents))
    assert (status, said["error"].startswith("picture 2 ")) == (400, True)
    assert counted(server.port)["red"] == 4


def test_other_sites_and_strangers_change_nothing(head):
    server = Server(head, token=TOKEN)
    try:
        own = {"Authorization": f"Bearer {TOKEN}"}
        key = ask(server.port, "GET", "/api/pictures?label=green", **own)[2]["pictures"][0]["key"]
        assert ask(server.port, "GET", "/api/pictures?label=green")[0] == 401
        for path in (
            f"/api/shots/move?key={key}&label=red",
            f"/api/shots/remove?key={key}",
            "/api/classes?label=owl",
            "/api/classes/remove?label=red",
            "/api/undo",
        ):
            assert ask(server.port, "POST", path)[0] == 401
            assert ask(server.port, "POST", path, Origin="https://evil.example", **own)[0] == 403
            assert ask(server.port, "GET", path, **own)[0] == 405
    finally:
        server.close()


def test_changes_that_wait_learn_together_and_a_failure_takes_them_back(server, head, picture, monkeypatch):
    begun, go_on, own, learnt = threading.Event(), threading.Event(), live.learn, []

    def slow(shots, *given):
        learnt.append(shots.counts.tolist())
        begun.set()
        assert go_on.wait(60)
        return own(shots, *given)

    def until(pictures):
        deadline = time.monotonic() + 60
        while sum(counted(server.port).values()) != pictures:
            assert time.monotonic() < deadline

    monkeypatch.setattr(live, "learn", slow)
    contents = [picture("red") for _ in range(4)]

    def add(content):
        return ask(server.port, "POST", "/api/shots?label=red", content)[0]

    with ThreadPoolExecutor(4) as clients:
        found = [clients.submit(add, contents[0])]
        assert begun.wait(60)
        found += [clients.submit(add, content) for content in contents[1:]]
        until(16)
        go_on.set()
        assert {one.result() for one in found} == {200}
    assert learnt == [[4, 4, 5], [4, 4, 8]]

    begun.clear()
    go_on.clear()
    with ThreadPoolExecutor(2) as clients:
        found = [clients.submit(add, picture("red"))]
        assert begun.wait(60)
        found += [clients.submit(add, picture("red"))]
        until(18)
        head.write_bytes(head.read_bytes() + b"another program")
        go_on.set()
        assert {one.result() for one in found} == {409}
    assert counted(server.port) == {"blue": 4, "green": 4, "red": 8}
    assert ask(server.port, "GET", "/api/head")[2]["progress"] is None
