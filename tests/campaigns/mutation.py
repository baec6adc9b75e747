"""Mutate every function of a room, one place at a time, and run the room's tests on each mutant.

`python tests/campaigns/mutation.py stats` prints each mutant that all of these tests let pass. The tests are collected
once; each mutant lives in a fork that runs the tests which reach its function, the quickest first, and ends with the
first that fails.
"""

import gc
import hashlib
import inspect
import json
import os
import pkgutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from mutants import function_of, mutants  # noqa: E402

# Room: its tests, and the share of its mutants that is tried. Tables take seconds each.
ROOMS = {
    "stats": (["tests/stats"], 1.0),
    "data": (["tests/data"], 1.0),
    "report.tables": (
        [f"tests/report/test_{name}.py" for name in ("tables", "tables_by_hand", "pairing", "atlas")],
        0.25,
    ),
}
# Modules of a room that only move bytes are left out.
LEFT_OUT = {"kshot.data.store", "kshot.data.shards", "kshot.data.simulated", "kshot.data.catalog"}
LONGEST = 60


class Campaign:
    """A run of pytest whose loop goes over mutants instead of tests."""

    def __init__(self, room: str):
        self.room = room
        self.share = ROOMS[room][1]
        self.tried = 0
        self.survivors: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        functions = list(functions_of(self.room))
        measured = in_child(partial(measure, session, [function for _, _, function in functions]))
        assert measured, "a test fails without any mutation"
        for (module, name, function), tests in zip(functions, measured, strict=True):
            items = [session.items[number] for number in tests]
            for change, mutant in mutants(module, name, wide=True):
                label = f"{module.__name__.removeprefix('kshot.')}.{name}: {change}"
                if not drawn(label, self.share):
                    continue
                self.tried += 1
                if in_child(partial(survives, session, items, function, mutant)):
                    self.survivors.append(label)
                    print(label, flush=True)
        return True


def functions_of(room: str) -> Iterator[tuple[ModuleType, str, FunctionType]]:
    """Each module of the room with the names of its functions and methods; one of two names for the same is enough."""
    seen: set[FunctionType] = set()
    package = import_module(f"kshot.{room}")
    modules = [import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    for module in (m for m in (package, *modules) if m.__name__ not in LEFT_OUT):
        for outer, found in list(vars(module).items()):
            inner = [f"{outer}.{own}" for own in vars(found)] if inspect.isclass(found) else [outer]
            for name in inner:
                function = function_of(module, name)
                if not isinstance(function, FunctionType) or function in seen:
                    continue
                if function.__code__.co_filename == module.__file__:
                    seen.add(function)
                    yield module, name, function


def drawn(label: str, share: float) -> bool:
    """Chosen by a hash: the same every time, and untouched by changes elsewhere."""
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest(), "big") < share * 2**64


def in_child(work: Callable[[], Any]) -> Any:
    """What `work` returns in a fork; None where that dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            answer = json.dumps(work()).encode()
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(answer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else None


def survives(session: pytest.Session, items: list[pytest.Item], function: FunctionType, mutant: FunctionType) -> bool:
    """Whether all tests pass with the code of the mutant in the place of the function's."""
    # Processor time: on a busy machine, tests that are only slow would count as tests that notice the mutant.
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.alarm(20 * LONGEST)
    function.__code__ = mutant.__code__
    return all(passes(session, *pair) for pair in pairwise([*items, None]))


def passes(session: pytest.Session, item: pytest.Item, after: pytest.Item | None) -> bool:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
    return not session.testsfailed


def is_cache_of_kshot(found: object) -> bool:
    return isinstance(found, _lru_cache_wrapper) and (found.__module__ or "").startswith("kshot")


def measure(session: pytest.Session, functions: list[FunctionType]) -> list[list[int]] | None:
    """For each function the numbers of the tests that reach it, the quickest first; None where a test fails.

    Tests of one file share fixtures and what they made before, so what one of them reaches all of them do.
    """
    number = {function.__code__: place for place, function in enumerate(functions)}
    caches = [found for found in gc.get_objects() if is_cache_of_kshot(found)]
    called: dict[Path, set[int]] = defaultdict(set)
    seconds = []
    for item, after in pairwise([*session.items, None]):
        # What an earlier file left in a cache would answer for the code that this one asks.
        for found in caches:
            found.cache_clear()
        here = called[item.path]

        def note(frame: FrameType, event: str, _: object, here: set[int] = here) -> None:
            if event == "call" and frame.f_code in number:
                here.add(number[frame.f_code])

        start = time.perf_counter()
        sys.setprofile(note)
        passed = passes(session, item, after)
        sys.setprofile(None)
        if not passed:
            return None
        seconds.append(time.perf_counter() - start)
    quickest = sorted(range(len(seconds)), key=seconds.__getitem__)
    paths = [item.path for item in session.items]
    return [[test for test in quickest if place in called[paths[test]]] for place in range(len(functions))]


def campaign(room: str) -> Campaign:
    made = Campaign(room)
    with tempfile.TemporaryDirectory() as folder:
        options = ["-m", "not slow", "-p", "no:cacheprovider", "-s", f"--basetemp={folder}/base"]
        code = pytest.main([*options, *ROOMS[room][0]], plugins=[made])
    assert code == pytest.ExitCode.OK, code
    return made


if __name__ == "__main__":
    os.chdir(ROOT)
    done = campaign(sys.argv[1])
    print(f"{len(done.survivors)} of {done.tried} mutants of {done.room} survive")
