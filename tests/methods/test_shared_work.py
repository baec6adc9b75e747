"""What methods of a cell share: the same bits as alone, computed once, and out of reach without the evidence."""

from dataclasses import replace

import numpy as np
import pytest

from kshot.bench.cell import run_cell, run_method
from kshot.bench.study import Cell, MethodSpec, load_study
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.methods import blending, evidence, gda, shared_work
from kshot.methods.ncm import NCM
from kshot.methods.shared_work import SharedWork, once, sharing
from kshot.solvers.rows import frozen

CELL = Cell("sim-satellite", "simulated", "dataset", 4, 0)
PAPER = {
    spec.name: replace(spec, params={**spec.params, "epochs": 3} if spec.name in ("clap", "lpp", "hoso") else {})
    for spec in load_study("paper").grids[0].methods
}


@pytest.fixture(scope="module")
def satellite(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("features"))
    write(WORLDS[CELL.dataset], store)
    stratum = load_stratum(store, CELL.dataset, CELL.backbone)
    return stratum, load_prior(store, CELL.dataset, CELL.backbone, CELL.tier)


def told(record):
    assert record.status == "ok", record.reason
    answers = record.answers
    return (
        record.hits,
        record.selected,
        *(getattr(answers, name).tobytes() for name in ("true_surprise", "top_surprise", "squares")),
    )


def test_methods_that_share_tell_what_each_tells_alone_to_the_bit(satellite):
    stratum, prior = satellite
    specs = [*PAPER.values(), MethodSpec("fold_gda", "fold_gda"), MethodSpec("tip_adapter_loo", "tip_adapter_loo")]
    _, together = run_cell(CELL, specs, stratum, prior, keep_answers=True)
    episode = stratum.episode(CELL.shots, CELL.seed, prior)
    for spec, record in zip(specs, together, strict=True):
        alone = run_method(spec, episode, keep_answers=True)
        assert told(record) == told(alone), spec.name


@pytest.mark.parametrize(
    ("module", "name", "methods", "times"),
    [
        # Text, support and test pictures.
        (evidence, "unit_rows", ["ncm", "js_blend", "gda_alpha1", "oracle_lambda"], 3),
        (evidence, "class_means", ["ncm", "js_blend", "gda_alpha_loo", "mse_oracle"], 1),
        (gda, "fit_gaussian", ["gda_alpha1", "gda_alpha_loo", "gda_alpha_val"], 1),
        (blending, "leave_one_out_predictions", ["loo_blend", "loo_blend_kcorr"], 1),
    ],
)
def test_what_several_methods_need_is_computed_once(satellite, monkeypatch, module, name, methods, times):
    stratum, prior = satellite
    calls, inner = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: calls.append(1) or inner(*given))
    run_cell(CELL, [PAPER[method] for method in methods], stratum, prior)
    assert len(calls) == times


class Curious(NCM):
    """Asks for everything that could have been kept before it ran."""

    found: list

    def _fit(self, task):
        super()._fit(task)
        type(self).found = [shared_work._work.get(), once("unit rows", lambda: "mine", task.X, task.X.dtype)]


def test_an_outsider_finds_nothing(satellite):
    stratum, prior = satellite
    curious = MethodSpec("curious", f"{__name__}:Curious")
    _, records = run_cell(CELL, [PAPER["oracle_lambda"], curious, PAPER["ncm"]], stratum, prior)
    assert [record.status for record in records] == ["ok"] * 3
    from test_shared_work import Curious as ran

    assert ran.found == [None, "mine"]


def test_nothing_is_found_without_the_evidence_it_was_computed_from():
    work, rng = SharedWork(), np.random.default_rng(0)
    test, guess = frozen(rng.random((5, 3))), frozen(rng.random((5, 3)))
    with sharing(work):
        assert once("sum", lambda: "of the test", test) == "of the test"
        assert once("sum", lambda: "of the guess", guess) == "of the guess"
        assert once("other", lambda: "of another kind", test) == "of another kind"
        assert once("sum", lambda: "of a part", test[:4]) == "of a part"
        assert once("sum", lambda: "of another shape", test.reshape(3, 5)) == "of another shape"
        assert once("sum", lambda: "of other numbers", test.view(np.int64)) == "of other numbers"
        assert once("sum", lambda: "again", test) == "of the test"
    assert once("sum", lambda: "outside", test) == "outside"


def test_memory_that_can_change_counts_by_what_it_holds():
    rows = np.arange(6.0).reshape(2, 3)
    with sharing(SharedWork()):
        assert once("sum", lambda: "before", rows) == "before"
        assert once("sum", lambda: "a copy", rows.copy()) == "before"
        rows[0, 0] = 9
        assert once("sum", lambda: "after", rows) == "after"


def test_what_is_shared_cannot_be_written_to():
    with sharing(SharedWork()):
        means, counts = once("two", lambda: (np.zeros(3), np.ones(3)), 1)
        for array in (means, counts):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5
