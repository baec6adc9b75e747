"""`kshot records import`: other people's tables as records folders."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kshot.bench.check import check_records
from kshot.bench.imported import import_records

from kshot import load_records
from kshot.bench.records import Records, load_table
from kshot.bench.status import run_status
from kshot.errors import InputError, StudyError
from kshot.paper.claims import paper_claims
from kshot.paper.folders import arm_folders, compare_folders
from kshot.paper.summary import as_csv
from kshot.stats.panel import panel
from synthetic_records import synthetic_rows

MAPPING = """
name = "theirs"
[columns]
dataset = "Data set"
backbone = "arch"
shots = "K"
seed = "run"
method = "model"
accuracy = "top-1"
[constant]
tier = "dataset"
[chosen]
lambda = "best lam"
[names.dataset]
OxfordPets = "Pets"
"Food 101" = "Food101"
[names.backbone]
"ViT-B/16" = "ViT-B-16"
[names.method]
"Oracle blend" = "oracle_lambda"
CLIP = "zero_shot"
CLAP = "clap"
[methods."Their net"]
title = "Their net, tuned"
sees = ["support", "text", "validation"]
"""
SPELLED = {"Pets": "OxfordPets", "Food101": "Food 101"}
METHODS = {"oracle_lambda": "Oracle blend", "zero_shot": "CLIP", "clap": "CLAP", "lpp": "Their net"}


def their_rows():
    """What others would write of the synthetic records: names of their own, accuracies in per cent."""
    made = synthetic_rows(("Pets", "Food101"), ("ViT-B-16",), ("dataset",), methods=tuple(METHODS))
    return [
        {
            "Data set": SPELLED[row["dataset"]],
            "arch": "ViT-B/16",
            "K": row["shots"],
            "run": row["seed"],
            "model": METHODS[row["method"]],
            "top-1": None if row["accuracy"] is None else 100 * row["accuracy"],
            "best lam": json.loads(row["selected"]).get("lambda"),
        }
        for row in made
    ], made


def write_csv(path, rows):
    with path.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def write_lines(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


WRITERS = {
    ".csv": write_csv,
    ".jsonl": write_lines,
    ".parquet": lambda p, rows: pq.write_table(pa.Table.from_pylist(rows), p),
}


@pytest.fixture
def theirs(folder):
    (folder / "mapping.toml").write_text(MAPPING)
    write_csv(folder / "theirs.csv", their_rows()[0])
    return import_records(Path("theirs.csv"), Path("mapping.toml"))


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_numbers_that_were_written(folder, suffix):
    rows, made = their_rows()
    (folder / "mapping.toml").write_text(MAPPING)
    WRITERS[suffix](file := Path(f"theirs{suffix}"), rows)
    found = import_records(file, Path("mapping.toml"), Path("out"))
    assert found.records == len(made)
    assert "accuracies were read as per cent" in found.notes
    assert "method 'Their net' is not in kshot's lists" in " ".join(found.notes)
    table = {(r["dataset"], r["shots"], r["seed"], r["method"]): r for r in load_table("out").to_pylist()}
    for row in made:
        method = "Their net" if row["method"] == "lpp" else row["method"]
        kept = table[row["dataset"], row["shots"], row["seed"], method]
        assert kept["accuracy"] == pytest.approx(row["accuracy"], abs=1e-12)
        assert kept["backbone"], kept["tier"] == ("ViT-B-16", "dataset")
        assert json.loads(kept["selected"]).get("lambda") == json.loads(row["selected"]).get("lambda")
    assert run_status(Path("out")).missing == 0
    assert all(finding.passed for finding in check_records(Path("out")))


def test_shares_among_per_cents_are_told(folder):
    rows, made = their_rows()
    rows[3]["top-1"] /= 100
    write_csv(folder / "theirs.csv", rows)
    (folder / "mapping.toml").write_text(MAPPING)
    found = import_records(Path("theirs.csv"), Path("mapping.toml"))
    assert any(note.startswith(f"1 of {len(made)} of them are at most 1") for note in found.notes)


def test_report_tables_figures_and_published_work_and_say_imported(theirs):
    results = load_records(theirs.folder)
    computed = panel(pa.Table.from_pylist(their_rows()[1]))
    assert results.paired("clap", "oracle_lambda").mean == pytest.approx(
        (computed.column("clap") - computed.column("oracle_lambda")).mean()
    )
    assert results.panel.reference_points == {"oracle_lambda", "Their net"}
    report = results.report()
    assert "imported" in report.page.read_text().split("<section", 1)[0]
    assert "IMPORTED records" in (report.page.parent / "report.md").read_text()
    assert any(path.suffix == ".svg" or path.suffix == ".pdf" for path in report.files)
    judged = compare_folders(theirs.folder, paper_claims())
    assert any(line.computed for line in judged.lines), as_csv(judged)


def test_imported_records_are_never_mixed_with_ours(theirs, records):
    with pytest.raises(StudyError, match="exists already"):
        import_records(Path("theirs.csv"), Path("mapping.toml"), records.folder)
    found = Records(theirs.folder)
    with pytest.raises(StudyError, match="holds imported records"):
        found.claim(found.study(), (), {})
    Path("mapping.toml").write_text(MAPPING.replace('"theirs"', '"paper"'))
    beside = import_records(Path("theirs.csv"), Path("mapping.toml"))
    assert arm_folders(beside.folder) == [beside.folder]
    assert beside.folder not in arm_folders(records.folder)


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('accuracy = "top-1"', 'accuracy = "top1"', "unknown column 'top1'. Did you mean top-1"),
        ('seed = "run"\n', "", "name the column of seed in"),
        ('tier = "dataset"\n', 'tier = "dataset"\nseed = 1\n', "one of the two"),
        ("[chosen]", "[choosen]", "unknown key 'choosen'. Did you mean chosen"),
        ('name = "theirs"', "name = theirs", "not valid TOML"),
        ('name = "theirs"', 'name = "theirs"\nchosen = 3', "not valid TOML"),
        ("[names.dataset]", "[names]\ntier = 3\n[names.dataset]", r"\[names\] is not of the form"),
        ('"Food 101" = "Food101"', '"Food 101" = "Pets"', "a second record of Pets"),
    ],
)
def test_a_wrong_mapping_is_refused_in_one_sentence(folder, was, now, said):
    write_csv(folder / "theirs.csv", their_rows()[0])
    (folder / "mapping.toml").write_text(MAPPING.replace(was, now))
    with pytest.raises(InputError, match=said):
        import_records(Path("theirs.csv"), Path("mapping.toml"))
    assert not (folder / "records").exists()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("top-1", 101, "row 5: accuracy is 101"),
        ("top-1", "good", "row 5: could not convert"),
        ("K", 0, "row 5: shots is 0"),
        ("K", 1.5, "row 5: shots is 1.5"),
        ("K", "16shot", r"row 5: shots is 16shot; allowed are .* in \[names.shots\]"),
        ("K", "inf", "row 5: shots is inf"),
        ("run", "first", "row 5: seed is first"),
        ("arch", "", "row 5: arch is empty"),
        ("arch", "ViT-L/14", r"row 5: .* in \[names.backbone\]"),
    ],
)
def test_a_wrong_row_is_named(folder, column, value, said):
    rows, _ = their_rows()
    rows[3][column] = value
    write_csv(folder / "theirs.csv", rows)
    (folder / "mapping.toml").write_text(MAPPING)
    with pytest.raises(InputError, match=said):
        import_records(Path("theirs.csv"), Path("mapping.toml"))
