"""What engines hand out: the paper's own study, cut so that many workers stay busy and features are loaded seldom."""

from itertools import pairwise

import pytest
from kshot.bench.work import PARTS_OF_A_STUDY, find_work

from kshot.bench.records import Records
from kshot.bench.study import load_study
from kshot.data.store import Store


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    nothing = tmp_path_factory.mktemp("nothing")
    return find_work(load_study("paper"), Store(nothing), Records(nothing / "records"), must_be_stored=False)


def cost(work, batch):
    """Of a trained head's passes and the others' scores, in one unit."""
    trained = {"hoso", "clap", "lpp"} & {spec.name for spec in batch.specs}
    sizes = [(work.strata[cell.dataset, cell.backbone], cell.shots) for cell in batch.cells]
    return sum(size.cost(shots, len(trained)) for size, shots in sizes)


def test_every_cell_that_is_not_dropped_is_handed_out_once(paper):
    cells = [cell for batch in paper.batches() for cell in batch.cells]
    assert len(cells) == len(set(cells)) == 4800
    shared = [cell for shard in range(3) for batch in paper.batches(shard, 3) for cell in batch.cells]
    assert sorted(map(str, shared)) == sorted(map(str, cells))


def test_a_batch_has_one_stratum_and_one_list_of_methods(paper):
    for batch in paper.batches():
        assert len({(cell.dataset, cell.backbone) for cell in batch.cells}) == 1
        assert {tuple(s.name for s in paper.missing[cell]) for cell in batch.cells} == {
            tuple(spec.name for spec in batch.specs)
        }


def test_dear_batches_come_first_and_none_is_a_large_part_unless_it_is_one_cell(paper):
    batches = paper.batches()
    costs = [cost(paper, batch) for batch in batches]
    assert all(before >= after for before, after in pairwise(costs))
    most = sum(costs) / PARTS_OF_A_STUDY
    assert all(paid <= most for paid, batch in zip(costs, batches, strict=True) if len(batch.cells) > 1)
    # Cheap cells travel together: fewer loads than cells.
    assert len(batches) < len(paper.missing) / 4
