"""What a stranger may pass by mistake, in a fresh interpreter without type checks: one clear sentence each."""

import json
import subprocess
import sys

SCRIPT = """
import json, numpy as np, kshot
b = kshot.load_features("tuxpaint", "lite0")
given = {"pool": b.pool, "test": b.test, "text": b.text["photo"]}
F = kshot.Features.from_arrays("mine", **given)
said = {}
def tried(name, call):
    try:
        said[name] = repr(call())
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
make = lambda **change: lambda: kshot.Features.from_arrays(**({"name": "mine"} | given | change))
tried("one array", make(pool=b.pool.X))
tried("three", make(pool=(*b.pool, 1)))
tried("name", make(name=3))
tried("constant", make(constants={"logit_scale": "x"}))
tried("ids", make(ids=["a"]))
compare = lambda heads=("ncm",), on=F, **options: lambda: kshot.compare(heads, on, seeds=1, **options)
tried("no heads", compare(None))
tried("number", compare([3]))
tried("no features", compare(on=None))
tried("words", compare(shots=["2"]))
tried("fractions", compare(shots=[2.5]))
tried("workers", compare(workers=None))
tried("an array", lambda: sorted(set(compare(shots=np.array([1, 2]), workers=1)().to_pandas().shots)))
print(json.dumps(said))
"""
EXPECTED = {
    "one array": "InputError: pool must be a pair (X, y), not ndarray.",
    "three": "InputError: pool must be a pair (X, y), not tuple.",
    "name": "KshotError: dataset 3 is no name; give it in quotes.",
    "constant": "InputError: constants: logit_scale must be a number above 0, not 'x'.",
    "ids": "InputError: ids must be a pair (of the pool, of the test), not list.",
    "no heads": "InputError: None is not a head.",
    "number": "InputError: 3 is not a head.",
    "no features": "InputError: None are no features.",
    "words": "StudyError: compare: 'shots' must be whole numbers from 1 up to 2147483647, not ['2'].",
    "fractions": "StudyError: compare: 'shots' must be whole numbers from 1 up to 2147483647, not [2.5].",
    "an array": "[1, 2]",
    "workers": "KshotError: workers must be a whole number from 1 up, not None.",
}


def test_every_mistake_is_one_sentence(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for name, expected in EXPECTED.items():
        assert said[name].startswith(expected), name
