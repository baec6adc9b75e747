import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshot.data.views import RECIPES
from kshot.encode.preprocess import Preprocessing, draw_view

sides = st.integers(1, 500)


@given(sides, sides, st.sampled_from(sorted(RECIPES.values())), st.integers(0, 19), st.text(max_size=8))
def test_boxes_stay_inside_and_keep_their_share(width, height, least, number, name):
    (left, top, right, bottom), _ = draw_view(name, number, (width, height), least)
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    rounding = (width + height) / (width * height)
    assert (right - left) * (bottom - top) / (width * height) >= least - rounding


def test_views_depend_on_id_and_number_only():
    first = [draw_view("a", n, (300, 200), 0.5) for n in range(20)]
    assert first == [draw_view("a", n, (300, 200), 0.5) for n in range(20)]
    assert len({view.box for view in first}) > 15
    assert first != [draw_view("b", n, (300, 200), 0.5) for n in range(20)]


def test_areas_and_mirrors_follow_the_recipe():
    drawn = [draw_view(str(n), 0, (1000, 1000), 0.5) for n in range(4000)]
    areas = np.array([(v.box[2] - v.box[0]) * (v.box[3] - v.box[1]) / 1e6 for v in drawn])
    assert np.mean([v.flip for v in drawn]) == pytest.approx(0.5, abs=0.04)
    # Tall and wide crops of large area do not fit and are drawn again, so the mean lies below 3/4.
    assert 0.66 < areas.mean() < 0.75
    assert 0.5 <= areas.min() + 0.002 < 0.52


def test_a_view_is_the_box_scaled_and_mirrored():
    from PIL import Image

    values = np.zeros((10, 20, 3), np.uint8)
    values[:, 10:] = 255
    preprocessing = Preprocessing(4, (0.0,) * 3, (1.0,) * 3)
    picture = Image.fromarray(values)
    assert preprocessing.view(picture, (10, 0, 20, 10), False).min() == 1
    whole = preprocessing.view(picture, (0, 0, 20, 10), False)
    np.testing.assert_allclose(preprocessing.view(picture, (0, 0, 20, 10), True), whole[:, :, ::-1], atol=1e-6)
