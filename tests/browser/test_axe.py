"""The audit itself finds what it should."""

import pytest

from axe import grave_findings

pytestmark = pytest.mark.ci


def test_grave_faults_are_found_and_a_sound_page_passes(browser):
    context = browser.new_context()
    page = context.new_page()
    sound = "<!doctype html><html lang=en><title>t</title><main><h1>t</h1><label>Name <input></label></main>"
    page.set_content(sound)
    assert grave_findings(page) == []
    page.set_content(sound.replace("<label>Name <input></label>", "<input><p style='color:#bbb'>pale</p>"))
    assert {line.partition(":")[0] for line in grave_findings(page)} == {"label", "color-contrast"}
    context.close()
