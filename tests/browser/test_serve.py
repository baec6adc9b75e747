"""The served page in a real browser."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from browser_names import MARKUP
from colours import COLOURS, new_picture
from kshot.pictures.serve import MOST_BYTES
from serving import Server, file

pytestmark = pytest.mark.ci


@pytest.fixture
def page(served):
    return served()


def test_pictures_are_answered_learnt_and_kept_over_a_reload(page):
    from playwright.sync_api import expect

    page.set_input_files("#files", [file("leaf.png", new_picture("green", 1)), file(MARKUP, new_picture("red", 2))])
    page.get_by_text("2 of 2 pictures").wait_for()
    rows = page.locator("#results > li")
    leaf = rows.filter(has_text="leaf.png")
    assert "green" in leaf.locator(".said").inner_text()
    assert leaf.locator(".near img").count() == 3
    nearest = leaf.locator(".near img").first
    expect(nearest).to_have_js_property("complete", True, timeout=60_000)
    assert nearest.evaluate("img => img.naturalWidth") > 0
    red = rows.filter(has_not_text="leaf.png")
    assert MARKUP in red.locator("figcaption").first.inner_text()
    assert f"red {MARKUP}" in red.locator(".said").inner_text()
    page.reload()
    page.get_by_text("2 of 2 pictures").wait_for()
    red.get_by_role("combobox").fill("crimson")
    red.get_by_role("button").click()
    page.get_by_text("4 classes, 13 pictures").wait_for()
    page.get_by_role("button", name="Clear the list").click()
    page.reload()
    page.get_by_text("4 classes, 13 pictures").wait_for()
    assert rows.count() == 0
    assert page.title() == "kshot"


def test_large_pictures_of_phones_are_reduced(page):
    """Noise of twelve megapixels has more bytes than the server takes."""
    rng = np.random.default_rng(0)
    out = io.BytesIO()
    picture = Image.fromarray(rng.integers(0, 90, (3000, 4000, 3), dtype=np.uint8) + np.array([160, 0, 0], np.uint8))
    picture.save(out, "JPEG", quality=100, subsampling=0)
    assert len(out.getvalue()) > MOST_BYTES
    page.set_input_files("#files", [file("phone.jpg", out.getvalue())])
    page.get_by_text("1 of 1 picture").wait_for()
    assert "red" in page.locator("#results > li .said").inner_text()


def test_an_address_without_its_token_says_so(browser, served_head):
    server = Server(served_head, token="a-token-that-is-long-enough")
    page = browser.new_page()
    page.goto(server.url)
    page.get_by_role("alert").get_by_text("lacks its token").wait_for()
    page.close()
    server.close()


def test_a_bomb_and_a_text_file_are_told_and_harm_nothing(page):
    out = io.BytesIO()
    Image.new("1", (10_000, 15_000)).save(out, "PNG")
    page.set_input_files(
        "#files",
        [file("bomb.png", out.getvalue()), file("notes.jpg", b"just text"), file("ok.png", new_picture("blue", 3))],
    )
    page.get_by_text("3 of 3 pictures").wait_for()
    rows = page.locator("#results > li")
    # The browser reduces it, or says why it cannot.
    assert rows.filter(has_text="bomb.png").locator(".error, .said").first.inner_text()
    assert "not a readable picture" in rows.filter(has_text="notes.jpg").locator(".error").inner_text()
    assert "blue" in rows.filter(has_text="ok.png").locator(".said").inner_text()


@pytest.mark.slow
def test_five_hundred_pictures_at_once(page):
    contents = {colour: new_picture(colour, 4) for colour in COLOURS}
    names = [f"{number:03d}-{list(COLOURS)[number % 3]}.png" for number in range(500)]
    page.set_input_files("#files", [file(name, contents[name[4:-4]]) for name in names])
    page.get_by_text("500 of 500 pictures").wait_for(timeout=600_000)
    told = page.locator("#results > li").evaluate_all(
        "rows => rows.map(row => [row.querySelector('figcaption').textContent, row.querySelector('.said').textContent])"
    )
    assert sorted(name for name, _ in told) == names
    assert all(name[4:-4] in said for name, said in told)


class Evil(BaseHTTPRequestHandler):
    """A page of another origin; served for real, since a browser trusts an invented one even less."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<title>evil</title>")

    def log_message(self, *_):
        pass


@pytest.fixture
def evil():
    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_another_site_cannot_use_the_page(browser, served_head, evil):
    """The browser sends a simple request and hides the answer, so it is the server that must refuse it."""
    server = Server(served_head)
    kept = served_head.read_bytes()
    context = browser.new_context()
    page = context.new_page()
    page.goto(evil)
    outcome = page.evaluate(
        """async ([url, bytes]) => {
            const body = new Uint8Array(bytes);
            const send = (mode, type) => fetch(url, {method: 'POST', mode, body, headers: {'Content-Type': type}})
                .then((answer) => answer.type, () => 'refused');
            return [await send('cors', 'application/octet-stream'), await send('no-cors', 'text/plain')];
        }""",
        [f"{server.url}/api/shots?label=green", list(new_picture("green", 5))],
    )
    assert outcome == ["refused", "refused"]
    assert served_head.read_bytes() == kept
    context.close()
    server.close()
