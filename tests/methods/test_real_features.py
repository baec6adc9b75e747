"""The published heads on real CLIP features of Stanford Cars, against figures measured elsewhere."""

import pytest

from stanford_cars import accuracy, mean_accuracy


def test_gda_at_sixteen_shots(cars):
    assert accuracy(cars, "gda_alpha1", 16) == pytest.approx(77.9, abs=1.5)


def test_clap_at_one_shot(cars):
    assert accuracy(cars, "clap", 1) == pytest.approx(62.0, abs=2.0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "expected"), [("clap", 75.6), ("lpp", 76.5)])
def test_probes_at_sixteen_shots(cars, name, expected):
    assert accuracy(cars, name, 16) == pytest.approx(expected, abs=1.5)


@pytest.mark.slow
@pytest.mark.parametrize(("shots", "margin"), [(2, -1.5), (4, -1.5), (16, 2.0)])
def test_hoso_against_the_loo_blend(cars, shots, margin):
    assert (
        mean_accuracy(cars, "hoso", shots) >= mean_accuracy(cars, "loo_blend", shots, seeded=False) + margin
    )
