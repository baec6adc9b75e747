"""A plan's time: how seconds grow with size, what earlier records tell, and what is left of a run."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from benchmarks.timing import all_turns
from kshot.bench.costs import CellSize, TimedMethod, Timing, cell_size, earlier_costs, seconds_weights
from kshot.bench.plan import SECONDS_TO_START, forecast, seconds_left, worker_bytes
from kshot.bench.work import find_work

from bench.conftest import STUDY
from kshot.bench.records import Records, load_table
from kshot.bench.study import MethodSpec, bundled_studies, load_study, parse_study
from kshot.cli.status import status
from kshot.data.store import Store

SIZES = [
    CellSize(10, 1, 512, 900),
    CellSize(20, 16, 512, 400),
    CellSize(30, 8, 1024, 450),
    CellSize(50, 4, 1024, 800),
    CellSize(55, 16, 512, 900),
    CellSize(90, 2, 768, 3000),
]


def a_probe(problem):
    """Hundreds of passes over the shots beside a constant."""
    return 0.02 + 4e-9 * problem.classes * problem.shots * problem.classes * problem.dim


def a_gaussian(problem):
    """A covariance, its inverse, and scores."""
    rows = problem.classes * problem.shots
    return 1e-10 * (rows * problem.dim**2 + problem.dim**3) + 2e-10 * problem.n_test * problem.classes * problem.dim


@pytest.mark.parametrize("seconds", [a_probe, a_gaussian])
def test_growth_is_found_from_a_few_sizes(seconds):
    weights = seconds_weights([Timing(size, seconds(size)) for size in SIZES])
    for size in SIZES:
        assert weights @ size.terms() == pytest.approx(seconds(size), rel=0.01)
    for other in (CellSize(60, 8, 768, 1500), CellSize(200, 16, 512, 4000)):
        assert weights @ other.terms() == pytest.approx(seconds(other), rel=0.3)


@pytest.fixture
def work_of(computed):
    """The work of the small study after changes, on the records that are there or on others."""

    def find(records="records", **changed):
        study = parse_study({**tomllib.loads(STUDY), **changed}, "here")
        return find_work(study, Store(computed / "features"), Records(computed / records), must_be_stored=False)

    return find


def test_earlier_records_tell_the_median_over_the_draws(computed, work_of):
    recorded = load_table(computed / "records").to_pylist()
    costs = earlier_costs([computed / "records"], work_of().strata, "float32")
    for method, least in (("zero_shot", 1), ("loo_blend", 2)):
        known = {(m.problem.classes, m.problem.shots): m.seconds for m in costs[TimedMethod(method, 0)]}
        assert len(known) == 2 * (3 - least)
        for (classes, shots), seconds in known.items():
            rows = [r for r in recorded if (r["method"], r["n_classes"], r["shots"]) == (method, classes, shots)]
            assert seconds == pytest.approx(np.median([r["fit_seconds"] + r["score_seconds"] for r in rows]))
    assert earlier_costs([computed / "records"], work_of().strata, "float64") == {}


def test_seconds_of_another_machine_do_not_count(records, work_of):
    (log,) = (records.folder / "runs").glob("*.json")
    log.write_text(json.dumps(json.loads(log.read_text()) | {"processor": "an abacus"}))
    assert earlier_costs([records.folder], work_of().strata, "float32") == {}


def test_a_method_with_other_parameters_costs_what_those_took(work_of):
    """HOSO trains twice, the paper's variant once."""
    twice = work_of("twice", shots=[16], methods=["hoso"])
    once = work_of("once", shots=[16], methods=[{"use": "hoso", "as": "hoso", "refit": False}])
    twice, once = (plan.cpu_seconds - SECONDS_TO_START for plan in forecast([twice, once]))
    assert 0.3 < once / twice < 0.7


def test_the_time_left_is_that_of_the_missing_cells(computed, work_of):
    assert seconds_left(work_of(), computed / "records") == 0
    once = seconds_left(work_of(seeds=[0, 1, 2, 3]), computed / "records")
    thrice = seconds_left(work_of(seeds=[0, 1, 2, 3, 4, 5]), computed / "records")
    assert 0 < 2.99 * once < thrice < 3.01 * once
    assert seconds_left(work_of(methods=["zero_shot", "gda_alpha1"]), computed / "records") is None


def test_works_are_planned_together_and_a_method_costs_nothing_below_its_shots(work_of):
    one = work_of("one", shots=[1], methods=["ncm"])
    undefined = work_of("two", shots=[1], methods=["ncm", "loo_blend"])
    plain, more = forecast([one, undefined])
    assert plain.cpu_seconds > 0
    assert more.cpu_seconds == pytest.approx(plain.cpu_seconds)
    assert more.disk_bytes > plain.disk_bytes


def test_the_table_knows_every_method_and_other_names_and_machines_of_other_speed(work_of, monkeypatch):
    from kshot.bench import costs
    from kshot.methods import registry

    table = costs.kept_costs()
    studied = [spec for name in bundled_studies() for spec in load_study(name).methods().values()]
    recipes = {spec.recipe for spec in studied if spec.use in registry.BUILTIN}
    assert {subject.method for subject in table} == {costs.CELL_ITSELF, *registry.BUILTIN, *recipes}
    monkeypatch.setattr(costs, "product_peak", lambda: 5e10)
    named = work_of("three", methods=[{"use": "clap", "as": "clap_seed1", "seed": 1}])
    plain = work_of("four", methods=["clap"])
    first, same = forecast([named, plain])
    assert first.cpu_seconds == pytest.approx(same.cpu_seconds)
    monkeypatch.setattr(costs, "product_peak", lambda: 1e11)
    (faster,) = forecast([plain])
    assert same.cpu_seconds - SECONDS_TO_START == pytest.approx(2 * (faster.cpu_seconds - SECONDS_TO_START))


def test_a_plan_writes_no_features(tmp_path):
    study, nothing = parse_study(tomllib.loads(STUDY), "here"), Records(tmp_path / "records")
    work = find_work(study, Store(tmp_path / "features"), nothing, must_be_stored=False)
    assert {size.classes for size in work.strata.values()} == {10, 37}
    assert len(work.unstored) == 2
    assert not (tmp_path / "features").exists()


def test_status_tells_the_time_left_and_imports_nobodys_code(records, folder, capsys):
    records.folder.rename("moved")
    Path("records").mkdir()
    Path("moved").rename("records/small")
    for grown, told in (('"loo_blend"]', True), ('"loo_blend", "unheard_of:Method"]', False)):
        Path("grown.toml").write_text(STUDY.replace("[0, 1, 2]", "[0, 1, 2, 3]").replace('"loo_blend"]', grown))
        status(Path("grown.toml"), features=folder / "features")
        assert ("of one core left" in capsys.readouterr().out) is told


@pytest.mark.parametrize("price", [1e-4, 0.004, 0.4])
def test_a_fit_of_many_epochs_is_counted_from_a_few(price):
    """Cheap turns are timed more often than dear ones."""
    asked = []

    def seconds_of(spec):
        asked.append(spec.params["epochs"])
        return 0.7 + price * spec.params["epochs"]

    assert all_turns(MethodSpec("lpp", "lpp"), seconds_of) == pytest.approx(0.7 + 300 * price)
    assert sum(asked) * price < 300 * price / 10 if price == 0.4 else max(asked) <= 300


def test_a_fit_without_turns_is_timed_whole_and_one_that_fails_has_no_time():
    assert all_turns(MethodSpec("ncm", "ncm"), lambda spec: 3.0 if spec.params == {} else 0.0) == 3.0
    assert all_turns(MethodSpec("clap", "clap"), lambda spec: None) is None


def test_no_worker_of_the_paper_needs_two_gigabytes(tmp_path):
    work = find_work(load_study("paper"), Store(tmp_path), Records(tmp_path / "records"), must_be_stored=False)
    needs = {stratum: worker_bytes(cell_size(size, 16), "float32") for stratum, size in work.strata.items()}
    assert max(needs.values()) < 2e9
    assert max(needs, key=lambda stratum: needs[stratum]) == ("SUN397", "RN50")
