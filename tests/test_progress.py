"""What is told of a long work where no bar can be drawn."""

import logging

import pytest

from kshot import progress


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when the test says so."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_counts_and_time_left_are_told(clock, caplog):
    caplog.set_level(logging.INFO, "kshot")
    with progress.Progress("pictures", 12, pause=5) as watched:
        for _ in range(12):
            clock[0] += 3
            watched.advance()
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == "2/12 pictures, 6 s, about 30 s left"
    assert told[-1] == "12/12 pictures, 36 s"
    assert len(told) == 6
