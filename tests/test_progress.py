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


def test_steps_of_one_work_are_counted_together(clock, caplog):
    caplog.set_level(logging.INFO, "kshot")
    with progress.one_bar("work", 10):
        for unit in ("pictures", "checks"):
            with progress.Progress(unit, 5) as step:
                for _ in range(5):
                    clock[0] += 3
                    step.advance()
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == "2/10 pictures, 6 s, about 24 s left"
    assert told[-1] == "10/10 checks, 30 s"
    with progress.Progress("pictures", 1) as after:
        after.advance()
    assert caplog.records[-1].getMessage().startswith("1/1 pictures")


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
