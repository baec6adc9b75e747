"""Which pictures are encoded: a capped pool, and views of what some draw uses, each picture decoded once."""

from collections import Counter

import numpy as np
import pytest

from colours import ColourEncoder
from kshot.bench.query import query
from kshot.bench.study import Grid, MethodSpec, Study
from kshot.data.store import Store
from kshot.data.stratum import load_stratum
from kshot.encode import targets
from kshot.encode.encoding import encode_pictures
from kshot.encode.sources import find_source
from kshot.encode.targets import Encoding
from kshot.errors import FeatureError, StudyError
from kshot.types import Views
from picture_sets import write_shards

DRAWS = {(1, 0, "balanced"), (2, 1, "balanced")}
VIEWS = {Views("clap", 3): DRAWS, Views("tip", 2): DRAWS}


@pytest.fixture
def source(tmp_path):
    return find_source(str(write_shards(tmp_path / "wds", {"train": 4, "test": 1}, per_shard=9)))


@pytest.fixture
def decoded(monkeypatch):
    """How often each picture was decoded."""
    count = Counter()

    class Counted(targets.Decoded):
        def load(self):
            count[self.picture.id] += self._image is None
            return super().load()

    monkeypatch.setattr("kshot.encode.blocks.Decoded", Counted)
    return count


def jobs(source, *pixels):
    return [Encoding("set", f"c{n}", source, ColourEncoder(pixels=n), batch=5, threads=1) for n in pixels]


def stored(store):
    return {(m.backbone, m.part): m.sha256 for m in store.manifests()}


def test_a_picture_is_decoded_once_and_views_are_of_drawn_pictures_only(source, tmp_path, decoded):
    store = Store(tmp_path / "features")
    encode_pictures(jobs(source, 8, 10), store, VIEWS, pool_cap=6)
    pool = store.images("set", "c8", "pool")
    assert (np.bincount(pool.y) == 6).all()
    assert pool.manifest.pool_cap == 6
    assert set(decoded.values()) == {1}
    assert decoded.keys() == {*pool.ids, *store.ids("set", "c8", "test")}
    # The draws by the stratum's own episodes are those whose views are there.
    stratum = load_stratum(store, "set", "c10", views=VIEWS, pool_cap=6)
    drawn = {stratum.pool_ids[r] for k, seed, profile in DRAWS for r in stratum._drawn(k, seed, profile)}
    for part in [f"pool-clap-view0{n}" for n in range(3)] + [f"pool-tip-view0{n}" for n in range(2)]:
        assert set(store.ids("set", "c10", part)) == drawn
    assert 6 <= len(drawn) <= 9

    # One encoder after the other, and views after the pictures, give the same bytes.
    apart = Store(tmp_path / "apart")
    encode_pictures(jobs(source, 10), apart, pool_cap=6)
    encode_pictures(jobs(source, 10, 8), apart, VIEWS, pool_cap=6)
    assert stored(apart) == stored(store)


def test_a_whole_pool_serves_a_capped_study_and_not_the_other_way(source, tmp_path):
    capped, whole = Store(tmp_path / "capped"), Store(tmp_path / "whole")
    encode_pictures(jobs(source, 8), capped, pool_cap=6)
    encode_pictures(jobs(source, 8), whole)
    few, many = (load_stratum(store, "set", "c8", pool_cap=6) for store in (capped, whole))
    assert few.pool_ids == many.pool_ids
    np.testing.assert_array_equal(few.pool.X, many.pool.X)
    assert len(load_stratum(whole, "set", "c8").pool.y) == 36
    fewer = load_stratum(capped, "set", "c8", pool_cap=4)
    assert set(fewer.pool_ids) == set(load_stratum(whole, "set", "c8", pool_cap=4).pool_ids)
    encode_pictures(jobs(source, 8), whole, pool_cap=6)
    with pytest.raises(FeatureError, match="at most 6 pictures of a class then, all now"):
        encode_pictures(jobs(source, 8), capped)

    grid = Grid(("set",), ("c8",), ("photo",), (1,), (0,), (MethodSpec("ncm", "ncm"),))
    sizes = query(Study("s", (grid,), pool_cap=6), whole).strata["set", "c8"]
    assert (sizes.n_pool, sizes.smallest_pool) == (18, 6)
    with pytest.raises(StudyError, match="at most 6 pictures of a class; the study wants all"):
        query(Study("s", (grid,)), capped)
