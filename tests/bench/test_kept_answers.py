"""A run keeps every head's answers beside its records, unless the study says otherwise."""

from dataclasses import replace

import numpy as np
from scipy.special import softmax

from folders import comparable, edit, fill
from kshot.bench.record import Record
from kshot.bench.records import Records, cell_place
from kshot.bench.study import Cell, load_study
from kshot.data.catalog import dataset_entry
from kshot.data.features import load_features
from kshot.files import files_at
from kshot.methods import registry
from kshot.stats.answers import RELATIVE_ERROR, answers_of

CELL = Cell("sim-pets", "simulated", "dataset", 2, 1)


def run(study, folder, name):
    found = Records(folder / name)
    fill(load_study(study), folder / "features", found)
    return found


def test_answers_are_those_of_the_head(records, folder):
    stored = load_features(CELL.dataset, CELL.backbone, features=folder / "features")
    episode = stored.episode(CELL.shots, CELL.seed)
    found = records.answers(CELL)
    assert set(found) == {"zero_shot", "ncm", "loo_blend"}
    for name, answers in found.items():
        head = episode.fit(registry.create(name))
        p, y = head.predict_proba(stored.test.X).astype(float), stored.test.y
        assert np.array_equal(answers.truth, y)
        assert np.array_equal(answers.predicted, head.predict(stored.test.X))
        nll = -np.log(p[np.arange(len(y)), y])
        assert np.allclose(answers.true_surprise, nll, rtol=1.01 * RELATIVE_ERROR, atol=1e-6)


def test_a_study_may_keep_none_and_its_records_are_the_same(records, folder):
    edit("small.toml", 'name = "small"', 'name = "small"\nanswers = false', to="without.toml")
    assert load_study("without.toml").hash == load_study("small.toml").hash
    without = run("without.toml", folder, "without")
    assert not (without.folder / "answers").exists()
    assert comparable(without.folder).equals(comparable(records.folder))
    assert without.answers(CELL) == {}


def test_a_method_that_comes_later_joins_the_others(records, folder):
    before = records.answers(CELL)
    edit("small.toml", '"loo_blend"', '"loo_blend", "gda_alpha1"', to="larger.toml")
    run("larger.toml", folder, "records")
    found = records.answers(CELL)
    assert set(found) == {*before, "gda_alpha1"}
    assert np.array_equal(found["ncm"].true_surprise, before["ncm"].true_surprise)


def test_a_damaged_file_counts_as_missing(records):
    [path] = files_at(records.folder, cell_place(CELL, "answers"))
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    assert records.answers(CELL) == {}


def test_answers_of_another_cell_count_as_missing(records):
    cells = (CELL, replace(CELL, seed=2))
    (here,), (there,) = (files_at(records.folder, cell_place(cell, "answers")) for cell in cells)
    here.write_bytes(there.read_bytes())
    assert records.answers(CELL) == {}


def test_six_bytes_per_picture_are_enough_at_the_sizes_of_the_paper(tmp_path):
    """Generated probabilities of seven sharpnesses, at the published zero-shot accuracies; hard sets cost most."""
    rng = np.random.default_rng(0)
    records, whole = Records(tmp_path), 0.0
    for name in load_study("paper").grids[0].datasets:
        entry = dataset_entry(name)
        n = min(entry.n_test, 3333)
        truth, rows = np.sort(rng.integers(0, entry.classes, n)), np.arange(n)
        kept = []
        for sharpness in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0):
            scores = rng.normal(size=(n, entry.classes))
            others = scores.copy()
            others[rows, truth] = -np.inf
            behind = others.max(axis=1) - scores[rows, truth]
            scores[rows, truth] += np.quantile(behind, np.mean(entry.band) / 100)
            p = softmax(sharpness * scores, axis=1)
            answers = answers_of(p, truth, p.argmax(axis=1))
            cell = Cell(name, "any", "any", 4, 0)
            kept.append(Record(cell, f"m{sharpness}", "m", ("text",), "ok", n_test=n, answers=answers))
        records.write_answers(kept)
        [path] = files_at(records.folder, cell_place(cell, "answers"))
        per_picture = path.stat().st_size / n / len(kept)
        assert per_picture < 6
        whole += per_picture * entry.n_test
    # Five backbones, a hundred (tier, K, seed) each, fifteen methods.
    assert whole * 5 * 100 * 15 < 4e9
