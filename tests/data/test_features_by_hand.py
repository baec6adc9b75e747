"""Features from arrays of the wrong type, and constants near the border; they kill mutants (tests/campaigns)."""

import inspect

import numpy as np
import pytest

import kshot
from kshot.errors import FeatureError, InputError

SOUND = np.eye(4, dtype=np.float32), [0, 1, 2, 3]


def from_arrays(**change):
    """Without the type checks of the test run, which would refuse these arguments first."""
    made = inspect.unwrap(kshot.Features.from_arrays.__func__)
    return made(kshot.Features, "w", **({"pool": SOUND, "test": SOUND} | change))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pool": SOUND[0]}, "pool must be a pair .X, y., not ndarray"),
        ({"pool": (*SOUND, [0])}, "pool must be a pair .X, y., not tuple"),
        ({"constants": {"logit_scale": "high"}}, "logit_scale must be a number above 0, not 'high'"),
    ],
)
def test_arguments_of_the_wrong_type_are_named(change, says):
    with pytest.raises(InputError, match=says):
        from_arrays(**change)


def test_constants_near_the_border_are_kept():
    made = from_arrays(constants={"logit_scale": 10.5}).episode(1, tier=None)
    assert made.constants(frozenset()) == {"logit_scale": 10.5}


def test_unknown_features_are_named_with_the_nearest(tmp_path):
    with pytest.raises(FeatureError, match=r"'tuxpant/lite0'.*Did you mean tuxpaint/lite0 or"):
        kshot.load_features("tuxpant", "lite0", features=tmp_path)
    with pytest.raises(FeatureError, match="Type: kshot encode --dataset Pets --backbone ViT-B-16"):
        kshot.load_features("Pets", "ViT-B-16", features=tmp_path)
