"""The server: predictions, live refits, and everything it refuses."""

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
from kshot.pictures.head import PictureHead, mean_norm
from kshot.pictures.serve import app, guards, live
from kshot.pictures.serve.guards import MOST_BYTES, check_binding
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


def counted(server):
    """The classes of the album with their numbers of pictures."""
    return {one["label"]: one["pictures"] for one in get(server, "/api/head")[1]["album"]}


def shots(head):
    return PictureHead.load(head).shots.counts.tolist()


def assert_fitted_on_its_shots(head):
    """The head on disk is the one that fitting the same shots and names gives."""
    saved = PictureHead.load(head)
    constants = {"logit_scale": saved.about.logit_scale, "anchor_scale": mean_norm(saved.about.text_norms)}
    again = replace(saved.shots, constants=constants).fit(type(saved.head)(**saved.head.get_params()))
    np.testing.assert_array_equal(saved.head.coef_, again.coef_)


def test_predict_add_and_download(server, head):
    """Whoever has the old file open, or kills the server, has the old head or the new one."""
    content, before = new_picture("green", 1), head.read_bytes()
    status, said = post(server, "/api/predict", content)
    assert (status, said["answer"]) == (200, "green")
    assert {shot["label"] for shot in said["nearest"]} == {"green"}
    with head.open("rb") as old:
        status, about = post(server, "/api/shots?label=green", content)
        assert (status, about["shots"]) == (200, [4, 5, 4])
        assert old.read() == before
    _, headers, downloaded = ask(server.port, "GET", "/api/head.safetensors")
    assert downloaded == head.read_bytes()
    assert "attachment" in headers["Content-Disposition"]
    assert shots(head) == [4, 5, 4]
    assert_fitted_on_its_shots(head)
    assert_refused(400, "this picture is a shot already.", post(server, "/api/shots?label=green", content))


def bomb(megapixels=50):
    """A PNG of a few kilobytes that unfolds to many pixels."""
    out = io.BytesIO()
    Image.new("1", (10_000, megapixels * 100)).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [(bomb(), "40,000,000"), (b"plain text", "not a readable picture"), (b"", "empty"), (b"GIF89a", "not a readable")],
    ids=["bomb", "text", "empty", "stub"],
)
def test_what_is_no_picture_is_refused(server, head, content, words):
    kept = head.read_bytes()
    for path in ("/api/predict", "/api/shots?label=red"):
        assert_refused(400, words, post(server, path, content))
    assert head.read_bytes() == kept


def test_uploads_are_limited_by_what_they_declare_and_by_what_they_send(server, monkeypatch):
    assert_refused(413, "20 MB", post(server, "/api/predict", Content_Length=str(MOST_BYTES + 1)))
    monkeypatch.setattr(guards, "MOST_BYTES", 1000)
    assert post(server, "/api/predict", iter([b"x" * 600, b"y" * 600]))[0] == 413


def test_an_unknown_label_is_refused_and_no_path_reaches_the_disk(server, tmp_path):
    before = set(tmp_path.rglob("*"))
    for label in ("gren", "..%2F..%2Fred", "%00", "red%2F..%2Fx"):
        assert post(server, f"/api/shots?label={label}&name=../../x", new_picture("green", 1))[0] == 400
    for path in ("/../head.safetensors", "/%2e%2e/etc/passwd", "/page.js/../live.py", "//etc/passwd"):
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
        assert get(server, "/api/head.safetensors", **headers)[0] == 403
    assert head.read_bytes() == kept
    own = {"Origin": server.url, "Sec_Fetch_Site": "same-origin"}
    assert post(server, "/api/predict", content, **own)[0] == 200


def test_every_answer_has_the_protective_headers(server):
    for path in ("/", "/page.js", "/api/head", "/nowhere", "/api/pictures?label=gren"):
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


def test_other_sites_and_strangers_change_nothing(head):
    with closing(Server(head, token=TOKEN)) as server:
        key = get(server, "/api/pictures?label=green", **BEARER)[1]["pictures"][0]["key"]
        assert get(server, "/api/pictures?label=green")[0] == 401
        shots = (f"/api/shots/move?key={key}&label=red", f"/api/shots/remove?key={key}")
        for path in (*shots, "/api/classes?label=owl", "/api/classes/remove?label=red", "/api/undo"):
            assert post(server, path)[0] == 401
            assert post(server, path, Origin="https://evil.example", **BEARER)[0] == 403
            assert get(server, path, **BEARER)[0] == 405


def test_a_token_comes_from_a_file_or_the_environment_and_else_is_new(tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert guards.read_token(tmp_path / "token", "another-token-of-length") == TOKEN
    assert guards.read_token(None, TOKEN) == TOKEN
    first, second = (guards.read_token(None, None) for _ in range(2))
    assert first != second
    check_binding("0.0.0.0", first)
    with pytest.raises(KshotError, match="cannot be read"):
        guards.read_token(tmp_path / "absent", None)


def test_connections_are_limited_and_half_sent_requests_keep_nobody_out(server):
    opened = []
    try:
        for _ in range(app.MOST_CONNECTIONS - 2):
            opened.append(socket.create_connection(("127.0.0.1", server.port)))
            opened[-1].sendall(b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert post(server, "/api/predict", new_picture("red", 1))[0] == 200
        opened += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        assert get(server, "/api/head")[0] == 503
    finally:
        for one in opened:
            one.close()
    deadline = time.monotonic() + 60
    while get(server, "/api/head")[0] != 200:
        assert time.monotonic() < deadline


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


@pytest.mark.slow
def test_of_pictures_added_to_two_servers_at_once_no_acknowledged_one_is_lost(server, head):
    with closing(Server(head)) as second, ThreadPoolExecutor(6) as clients:
        found = list(clients.map(add_red, [server, second] * 3, range(1, 7)))
    assert set(found) <= {200, 409}
    assert sum(shots(head)) == 12 + found.count(200)


def test_a_head_file_that_was_moved_or_fitted_again_is_not_overwritten(server, head, shades, fit, tmp_path):
    head.rename(tmp_path / "elsewhere.safetensors")
    assert_refused(404, "head.safetensors", get(server, "/api/head.safetensors"))
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


def listed(server, query=""):
    return get(server, f"/api/pictures{query}")[1]


def test_pictures_are_listed_moved_removed_and_undone(server, head):
    first = listed(server, "?label=green")
    assert (first["total"], {one["label"] for one in first["pictures"]}) == (4, {"green"})
    assert listed(server, "?label=green&start=3")["pictures"] == first["pictures"][3:]
    sure = [one["own"] for one in first["pictures"]]
    assert sure == sorted(sure)
    keys = [one["key"] for one in first["pictures"]]
    status, about = post(server, f"/api/shots/move?key={keys[0]}&label=red")
    assert (status, about["shots"], about["undo"]) == (200, [4, 3, 5], "moved a picture to red")
    assert shots(head) == [4, 3, 5]
    assert [one["key"] for one in listed(server)["pictures"]] == keys[:1]
    assert post(server, f"/api/shots/remove?key={keys[0]}")[1]["shots"] == [4, 3, 4]
    for counts in ([4, 3, 5], [4, 4, 4]):
        assert post(server, "/api/undo")[1]["shots"] == counts
    assert listed(server, "?label=green") == first


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
    "/api/shots?label=red&size=1": "sizes",
    "/api/shots?label=red&size=x": "sizes",
    "/api/shots?label=red&size=-1&size=4": "sizes",
    f"/api/shots?label=red{'&size=0' * 101}": "sizes",
}


def test_changes_that_make_no_sense_are_refused(server, head):
    kept = head.read_bytes()
    keys = [one["key"] for one in listed(server, "?label=green")["pictures"]]
    for path, words in NONSENSE.items():
        assert_refused(400, words, post(server, path.format(*keys), b"abc" if "size" in path else None))
    sizes, body = several(new_picture("red", 1), b"text")
    assert_refused(400, "picture 2 ", post(server, f"/api/shots?label=red{sizes}", body))
    assert head.read_bytes() == kept
    assert counted(server) == {"blue": 4, "green": 4, "red": 4}


def several(*contents):
    """Sizes for the query, and the pictures as one body."""
    return "".join(f"&size={len(own)}" for own in contents), b"".join(contents)


def test_a_class_comes_by_its_name_gets_pictures_and_goes(server, head):
    status, about = post(server, "/api/classes?label=%20grey%20")
    assert (status, about["classes"], about["shots"]) == (200, ["blue", "green", "red", "grey"], [4, 4, 4, 0])
    assert about["accuracy"] is not None
    sizes, body = several(new_picture("red", 1), new_picture("green", 1))
    status, about = post(server, f"/api/shots?label=violet&new=1{sizes}", body)
    assert (status, about["shots"]) == (200, [4, 4, 4, 0, 2])
    assert about["undo"] == "added the class violet with 2 pictures"
    assert_fitted_on_its_shots(head)
    post(server, "/api/classes/remove?label=red")
    assert counted(server) == {"blue": 4, "green": 4, "grey": 0, "violet": 2}
    for _ in range(3):
        _, about = post(server, "/api/undo")
    assert (about["classes"], about["shots"]) == (["blue", "green", "red"], [4, 4, 4])


def test_a_head_that_reads_no_text_says_that_a_name_is_not_enough(shades, fit, tmp_path):
    fit(shades, method="ncm").head.save(tmp_path / "ncm.safetensors")
    with closing(Server(tmp_path / "ncm.safetensors")) as server:
        assert_refused(400, "grey: NCM needs a picture", post(server, "/api/classes?label=grey"))
        assert counted(server) == {"blue": 4, "green": 4, "red": 4}


def test_changes_that_wait_learn_together_and_a_failure_takes_them_back(server, head, monkeypatch):
    begun, go_on, own, learnt = threading.Event(), threading.Event(), live.learn, []

    def slow(album, *given):
        learnt.append(album.counts()["red"])
        begun.set()
        assert go_on.wait(60)
        return own(album, *given)

    monkeypatch.setattr(live, "learn", slow)

    def add_while_fitting(clients, first, *later):
        begun.clear()
        go_on.clear()
        found = [clients.submit(add_red, server, first)]
        assert begun.wait(60)
        found += [clients.submit(add_red, server, seed) for seed in later]
        deadline = time.monotonic() + 60
        while counted(server)["red"] != learnt[-1] + len(later):
            assert time.monotonic() < deadline
        return found

    with ThreadPoolExecutor(4) as clients:
        found = add_while_fitting(clients, 1, 2, 3, 4)
        go_on.set()
        assert {one.result() for one in found} == {200}
        assert learnt == [5, 8]
        found = add_while_fitting(clients, 5, 6)
        head.write_bytes(head.read_bytes() + b"another program")
        go_on.set()
        assert {one.result() for one in found} == {409}
    assert counted(server) == {"blue": 4, "green": 4, "red": 8}
    assert get(server, "/api/head")[1]["progress"] is None
