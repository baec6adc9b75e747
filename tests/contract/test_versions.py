"""The numbers of every registered method are those of its version: `versions.toml` holds them.

`python tests/contract/test_versions.py` writes the file again, after a version was raised or a method was added.
"""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from kshot.methods import registry
from kshot.testing.problems import problem
from kshot.types import FREE_EVIDENCE

STORED = Path(__file__).with_name("versions.toml")
# Of each of four problems: the scores of three queries for a class each.
PLACES = (0, 17, 41), (0, 3, 5)
RELATIVE = 1e-6


def problems(method):
    """Arguments of `fit` and queries in float64: four shots, the fewest, views, and uneven shots: none in one class
    where the method allows it."""
    least = max(1, method.info.min_shots)
    few, many = problem(seed=2, shots=least), problem(seed=1)
    yield many.evidence(method.info.sees), many.test.X
    yield few.evidence(method.info.sees), few.test.X
    viewed = problem(seed=3, shots=least + 1)
    given = viewed.evidence(method.info.sees)
    if method.info.views:
        given["views"] = viewed.X + 0.05 * np.random.default_rng(2).normal(size=(3, *viewed.X.shape))
    yield given, viewed.test.X
    alone = method.info.sees == FREE_EVIDENCE or not method.info.min_shots
    uneven = problem(seed=4, counts=[4, 5, 0 if alone else 2, 4, 3, 3])
    yield {**uneven.evidence(method.info.sees), "classes": range(6)}, uneven.test.X


def scores(name):
    """Twelve scores."""
    heads = ((registry.create(name).fit(**given), queries) for given, queries in problems(registry.create(name)))
    return [score for head, queries in heads for score in head.scores(queries)[PLACES].tolist()]


def described(name):
    """What is stored of a method, without its scores."""
    method = registry.create(name)
    values = {key: "none" if value is None else value for key, value in method.get_params().items()}
    return {"version": method.info.version, "parameters": values}


def table():
    return tomllib.loads(STORED.read_text(encoding="utf-8"))


def disagreement(name, now, stored):
    """Why what is stored does not hold any more; empty where it does."""
    old, new = stored["parameters"], now["parameters"]
    changed = [key for key in old.keys() & new.keys() if old[key] != new[key]]
    was, there = np.array(stored["scores"]), np.array(now["scores"])
    moved = np.abs(was - there).max() > RELATIVE * np.abs(was).max()
    if now["version"] != stored["version"]:
        return "write it: python tests/contract/test_versions.py"
    if changed or moved:
        what = f"defaults of {', '.join(changed)} changed" if changed else "scores moved"
        return f"{name}: {what}: raise {type(registry.create(name)).__name__}.info.version"
    return ""


@pytest.mark.parametrize("name", registry.BUILTIN)
def test_numbers_are_those_of_the_version(name):
    now = described(name) | {"scores": scores(name)}
    assert not disagreement(name, now, table()[name])


def test_every_registered_name_is_stored():
    assert list(table()) == list(registry.BUILTIN)


def test_a_moved_score_and_another_default_ask_for_another_version():
    stored = table()["clap"]
    moved = stored | {"scores": [1.00001 * stored["scores"][0], *stored["scores"][1:]]}
    other = stored | {"parameters": stored["parameters"] | {"epochs": 200}}
    for now in (moved, other):
        assert "raise CLAP.info.version" in disagreement("clap", now, stored)
        assert "write it" in disagreement("clap", now | {"version": 2}, stored)
    assert not disagreement("clap", stored | {"parameters": stored["parameters"] | {"new": 1}}, stored)


def toml(value):
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml(part)}' for key, part in value.items())} }}" if value else "{}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    parts = {name: described(name) | {"scores": scores(name)} for name in registry.BUILTIN}
    lines = [f"[{name}]\n" + "".join(f"{k} = {toml(v)}\n" for k, v in part.items()) for name, part in parts.items()]
    STORED.write_text("\n".join(lines), encoding="utf-8")
