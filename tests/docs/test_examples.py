"""Every public name has an example in its docstring, and every example gives what it prints."""

import doctest
import logging

import pytest

import kshot

# Without an example as yet: they need an encoder, or records.
ELSEWHERE = {
    "Encoder", "encode_dataset", "PictureHead", "fit_pictures", "EncodePictures", "Features", "load_records", "run",
    "judge", "Results", "Table", "Estimate", "Study",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(kshot.__all__) - {"__version__"} - ELSEWHERE))
def test_the_example_of_a_public_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A command that another test ran in this process may have opened it.
    monkeypatch.setattr(logging.getLogger("kshot"), "handlers", [])
    (found, *_) = doctest.DocTestFinder(recurse=False).find(getattr(kshot, name), name, globs={})
    assert 2 <= len(found.examples) <= 7
    outcome = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(found)
    assert outcome.failed == 0
