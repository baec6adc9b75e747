"""The served head's own pictures in a real browser: listed, moved, removed, undone, by mouse, finger and keyboard."""

import threading

import pytest
from playwright.sync_api import expect

from axe import grave_findings
from browser_names import MARKUP
from colours import new_picture
from kshot.pictures.head import PictureHead
from kshot.pictures.serve import live
from serving import ask, file

pytestmark = pytest.mark.ci

RED = f"red {MARKUP}"
LEARNT = "All changes are learnt and saved."


def tiles(page, label):
    return page.get_by_role("list", name=f"Pictures of {label}", exact=True).locator(".tile")


def counts(head):
    """Pictures of blue, green and red on disk."""
    return PictureHead.load(head).shots.counts.tolist()


def learnt(page, words):
    expect(page.locator("#undo")).to_have_text(words, timeout=60_000)
    expect(page.locator("#state")).to_have_text(LEARNT, timeout=60_000)


def test_pictures_are_moved_removed_and_undone(served, served_head):
    page = served()
    expect(tiles(page, "green")).to_have_count(4)
    tiles(page, "green").get_by_text("1.png").click()
    tiles(page, "green").get_by_text("2.png").click()
    expect(page.locator("#chosen-count")).to_have_text("2 pictures chosen")
    page.locator("#target").select_option(RED)
    page.get_by_role("button", name="Move", exact=True).click()
    learnt(page, f"Undo: moved 2 pictures to {RED}")
    expect(tiles(page, RED)).to_have_count(6)
    assert counts(served_head) == [4, 2, 6]
    tiles(page, "blue").first.click()
    page.get_by_role("button", name="Remove", exact=True).click()
    learnt(page, "Undo: removed a picture")
    expect(tiles(page, "blue")).to_have_count(3)
    assert counts(served_head) == [3, 2, 6]
    page.locator("#undo").click()
    learnt(page, f"Undo: moved 2 pictures to {RED}")
    page.locator("#undo").click()
    learnt(page, "Undo")
    expect(page.locator("#undo")).to_be_disabled()
    assert counts(served_head) == [4, 4, 4]
    for tile in tiles(page, "blue").all():
        tile.click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator("#state")).to_contain_text("left without a picture")
    expect(tiles(page, "blue")).to_have_count(4)


def test_what_the_head_is_unsure_about_comes_first(served, doubted_head):
    page = served()
    doubtful = page.get_by_role("list", name="Doubtful pictures").locator(".tile")
    expect(doubtful).to_have_count(1)
    expect(doubtful).to_contain_text(f"wrong.pngin {RED}, looks like green")
    assert "wrong.png" in tiles(page, RED).first.inner_text()
    page.set_input_files(
        "#files", [file("sure.png", new_picture("blue", 1)), file("half.png", new_picture("red+blue", 2))]
    )
    page.get_by_text("2 of 2 pictures").wait_for()
    assert page.locator("#results figcaption").all_inner_texts()[0] == "half.png"
    doubtful.get_by_role("button", name="Move to green").click()
    learnt(page, "Undo: moved a picture to green")
    assert counts(doubted_head) == [4, 5, 4]
    expect(page.locator("#doubtful")).to_be_hidden()
    page.get_by_role("button", name="Ask the new head").click()
    page.get_by_text("2 of 2 pictures").wait_for()


def test_the_old_head_answers_while_the_new_one_learns(served, served_head, monkeypatch):
    page, kept = served(), served_head.read_bytes()
    begun, go_on, own = threading.Event(), threading.Event(), live.learn

    def slow(*given):
        begun.set()
        assert go_on.wait(60)
        return own(*given)

    monkeypatch.setattr(live, "learn", slow)
    try:
        tiles(page, "green").first.click()
        page.locator("#target").select_option("blue")
        page.get_by_role("button", name="Move", exact=True).click()
        assert begun.wait(60)
        expect(page.locator("#state")).to_contain_text("answers meanwhile")
        expect(page.get_by_role("progressbar", name="Refit")).to_be_visible()
        expect(tiles(page, "blue").first).to_contain_text("not learnt yet")
        page.set_input_files("#files", [file("leaf.png", new_picture("green", 1))])
        expect(page.locator(".answer")).to_have_text("green")
        assert served_head.read_bytes() == kept
        page.locator("#undo").click()
        expect(tiles(page, "green")).to_have_count(4)
        tiles(page, "blue").first.click()
        page.get_by_role("button", name="Remove", exact=True).click()
        expect(tiles(page, "blue")).to_have_count(3)
    finally:
        go_on.set()
    learnt(page, "Undo: removed a picture")
    assert counts(served_head) == [3, 4, 4]
    assert ask(page.server.port, "GET", "/api/head")[2]["refits"] == 2


def classes(head):
    """Classes on disk with their numbers of pictures."""
    found = PictureHead.load(head)
    return dict(zip(found.about.classes, found.shots.counts.tolist(), strict=True))


def test_a_class_is_added_with_pictures_removed_and_undone(served, served_head):
    page = served()
    page.locator("#new-name").fill("violet <b>")
    page.set_input_files(
        "#new-files", [file("a.png", new_picture("red+blue", 1)), file("b.png", new_picture("red+blue", 2))]
    )
    page.get_by_role("button", name="Add the class").click()
    learnt(page, "Undo: added the class violet <b> with 2 pictures")
    expect(page.locator("#new-message")).to_have_text("added violet <b>")
    expect(tiles(page, "violet <b>")).to_have_count(2)
    before = {"blue": 4, "green": 4, RED: 4}
    assert classes(served_head) == before | {"violet <b>": 2}
    page.set_input_files("#files", [file("new.png", new_picture("red+blue", 3))])
    expect(page.locator(".answer")).to_have_text("violet <b>")
    page.get_by_role("button", name="Remove the class green").click()
    learnt(page, "Undo: removed the class green")
    expect(page.locator("#class-list summary")).to_have_count(3)
    assert "green" not in classes(served_head)
    page.locator("#undo").click()
    learnt(page, "Undo: added the class violet <b> with 2 pictures")
    page.locator("#undo").click()
    learnt(page, "Undo")
    assert classes(served_head) == before
    assert page.locator("#class-list summary").all_inner_texts()[1].startswith("green")


def test_a_class_may_be_a_name_alone_and_mistakes_are_told(served, served_head):
    page = served()
    page.locator("#new-name").fill("grey")
    page.locator("#new-name").press("Enter")
    learnt(page, "Undo: added the class grey")
    expect(page.locator("#class-list")).to_contain_text("no picture yet: known by its name alone")
    assert classes(served_head)["grey"] == 0
    told = page.locator("#new-message")
    page.locator("#new-name").fill("green")
    page.locator("#new-name").press("Enter")
    expect(told).to_contain_text("There is a class green already")
    page.locator("#new-name").fill("violet")
    page.set_input_files("#new-files", [file("a.png", new_picture("red+blue", 1)), file("notes.jpg", b"just text")])
    page.get_by_role("button", name="Add the class").click()
    expect(told).to_contain_text("notes.jpg")
    page.set_input_files("#new-files", [file("a.png", new_picture("red+blue", 1))])
    page.get_by_role("button", name="Add the class").click()
    expect(told).to_contain_text("violet: LOO blend needs 2 pictures")
    assert "violet" not in classes(served_head)


def test_a_new_class_is_named_where_a_picture_is_tried_or_moved(served, one_shot_head):
    """All by keyboard."""
    page = served()
    page.set_input_files("#files", [file("new.png", new_picture("red+blue", 1))])
    page.locator("#results select").focus()
    page.keyboard.press("End")
    press(page, "Tab", "#results form input", 1)
    page.keyboard.type("violet")
    page.keyboard.press("Enter")
    learnt(page, "Undo: added the class violet with a picture")
    tiles(page, "green").first.locator("input").focus()
    press(page, "m", "#target", 1)
    page.keyboard.press("End")
    press(page, "Tab", "#chosen input", 1)
    page.keyboard.type("lime")
    page.keyboard.press("Enter")
    learnt(page, "Undo: moved a picture to the new class lime")
    assert classes(one_shot_head) == {"blue": 4, "green": 3, RED: 4, "violet": 1, "lime": 1}
    for reached in ("#new-name", "#new-files", "#new-add"):
        press(page, "Tab" if reached != "#new-name" else "Shift+Tab", reached)


def press(page, key, reached, most=60):
    """Press the key until the element that has the focus is the one; the focus is visible on every step."""
    for _ in range(most):
        page.keyboard.press(key)
        seen = page.evaluate(
            """() => [document.activeElement, document.activeElement.closest('label')]
                .some((one) => one && getComputedStyle(one).outlineStyle !== 'none')"""
        )
        assert seen, page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        if page.evaluate(f"document.activeElement.matches({reached!r})"):
            return
    raise AssertionError(f"{key} does not reach {reached}")


def test_everything_is_reached_by_keyboard(served, served_head):
    page = served()
    for reached in (".skip", "#theme", "#download", "#files"):
        press(page, "Tab", reached)
    page.set_input_files("#files", [file("leaf.png", new_picture("green", 1))])
    page.locator("#results form").wait_for()
    press(page, "Tab", "#results select")
    press(page, "Tab", "#results form button")
    page.keyboard.press("Enter")
    learnt(page, "Undo: added a picture to green")
    assert counts(served_head) == [4, 5, 4]
    press(page, "Tab", "summary")
    press(page, "Tab", ".tile input")
    press(page, "ArrowRight", ".tile input", 1)
    page.keyboard.press("Space")
    press(page, "m", "#target", 1)
    page.keyboard.press("g")
    press(page, "Tab", "#move", 1)
    page.keyboard.press("Enter")
    learnt(page, "Undo: moved a picture to green")
    assert counts(served_head) == [3, 6, 4]
    press(page, "Shift+Tab", ".tile input")
    page.keyboard.press("Delete")
    learnt(page, "Undo: removed a picture")
    assert counts(served_head) == [3, 6, 3]
    assert page.evaluate("document.activeElement.matches('.tile input')")
    page.keyboard.press("Control+z")
    learnt(page, "Undo: moved a picture to green")
    assert counts(served_head) == [3, 6, 4]


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("options", [{}, PHONE | {"color_scheme": "dark"}], ids=["light-desktop", "dark-phone"])
def test_the_audit_has_no_grave_finding_and_a_phone_scrolls_down_only(served, doubted_head, options):
    page = served(**options)
    page.set_input_files("#files", [file("leaf.png", new_picture("green", 1)), file("notes.jpg", b"just text")])
    page.get_by_text("2 of 2 pictures").wait_for()
    box = tiles(page, "green").first
    box.tap() if "has_touch" in options else box.click()
    page.locator("#target").select_option("a new class …")
    page.locator("#results select").select_option("a new class …")
    expect(page.locator("#chosen")).to_be_visible()
    assert grave_findings(page) == []
    wide, seen = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= seen
    if "has_touch" in options:
        small = "els => els.filter((el) => el.offsetParent && el.getBoundingClientRect().height < 24).length"
        assert page.locator("button, select, summary, .tile label, input[type=text]").evaluate_all(small) == 0
    assert page.locator("body").evaluate("el => getComputedStyle(el).backgroundColor") == (
        "rgb(20, 22, 26)" if "color_scheme" in options else "rgb(255, 255, 255)"
    )
