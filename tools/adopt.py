"""Take over records of kshot 0.2 into a folder of today: `python tools/adopt.py OLD NEW`.

The old folder names the hashes of all features, so that no features are needed: every row gets the key that today's
query of the same study asks for.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from kshot.bench.query import Asked, Keys, Query
from kshot.bench.recipes import described
from kshot.bench.record import ANSWERS, CELL, schema, table_of
from kshot.bench.records import Records
from kshot.bench.study import Cell, MethodSpec, Study, study_from_json
from kshot.data.episode import SMALLEST_RESIDUE
from kshot.data.store import BUNDLED, Store
from kshot.types import MethodInfo

# Reasons that a query gives before anything is computed.
KNOWN = ("has no text", "pool pictures beside its shots", "base to new is defined")
OLD_ANSWERS = dict(zip(ANSWERS, ("truth", "predicted", "true_surprise", "top_surprise", "squares"), strict=True))


def adopt(old: Path, new: Path) -> int:
    """Write all rows of the old folder into the new one, and its study as what was asked for; returns how many rows."""
    header = json.loads((old / "study.json").read_text(encoding="utf-8"))
    study = old_study(header["study"], bool(header["dropped"]))
    keys = Keys(study, with_meanings(header["features"]), study.methods().values(), of_version_1)
    answers = old_answers(old)
    rows, asked = [], {}
    for row in old_rows(old):
        cell, spec = Cell(*(row[name] for name in CELL)), study.methods().get(row["method"])
        if spec is None:
            continue
        named = asked.setdefault(cell, {})
        if row["status"] == "undefined" and any(words in row["reason"] for words in KNOWN):
            named[spec.name] = Asked(spec, reason=row["reason"])
            continue
        named[spec.name] = Asked(spec, keys.key(cell, spec))
        features = {part: digest[:16] for part, digest in keys.features(cell, spec).items()}
        rows.append(
            {name: row.get(name) for name in schema().names}
            | {"key": named[spec.name].key, "traceback": "", "answered": False}
            | {"recipe": json.dumps(keys.recipes[spec.name], sort_keys=True, default=list)}
            | {"features": json.dumps(features, sort_keys=True), "made_by": json.dumps({"kshot": row["version"]})}
            | answers.get((cell, spec.name), {})
        )
    records = Records(new)
    records.add(table_of(rows))
    cells = {
        cell: {s.name: asked[cell][s.name] for s in specs if s.name in asked[cell]}
        for cell, specs in in_order(study, asked)
    }
    dropped = frozenset(Cell(*values) for values in header["dropped"])
    records.save(Query(study, cells, keys, dropped=dropped))
    return len(rows)


def in_order(study: Study, asked: dict) -> list:
    return [(cell, specs) for cell, specs in study.cells().items() if cell in asked]


def of_version_1(spec: MethodSpec) -> MethodInfo:
    """What kshot 0.2 ran: the first version of every method."""
    return replace(described(spec), version=1)


def with_meanings(features: dict[str, str]) -> dict[str, str]:
    """The hashes of a header; one of kshot 0.1 lacks those of manifests, which the bundled features give."""
    bundled = Store(BUNDLED).hashes({(parts[0], parts[1]) for parts in (name.split("/") for name in features)})
    named = {name for name in features if f"{name}.json" not in features and not name.endswith(".json")}
    same = {name for name in named if bundled.get(name) == features[name]}
    return features | {f"{name}.json": bundled[f"{name}.json"] for name in same}


def old_study(content: dict[str, Any], dropped: bool) -> Study:
    """The study of an old header: without `min_residue` thin cells were dropped."""
    least = content.pop("min_residue", None)
    rules = {"least_left": SMALLEST_RESIDUE if least is None else least, "drop_thin": least is None and dropped}
    content["supports"] = json.dumps(content["supports"], sort_keys=True) if content.get("supports") else ""
    return study_from_json(json.dumps(content | rules))


def old_rows(old: Path) -> list[dict[str, Any]]:
    """Single cells before joined ones: a cell that was computed again replaces its older rows."""
    found: dict[tuple, dict[str, Any]] = {}
    for path in [*sorted(old.glob("cells/**/[!.]*.parquet")), *sorted(old.glob("compact/[!.]*.parquet"))]:
        for row in pq.read_table(path).to_pylist():
            found.setdefault(tuple(row[name] for name in (*CELL, "method")), row)
    return list(found.values())


def old_answers(old: Path) -> dict[tuple[Cell, str], dict[str, Any]]:
    """The kept answers by cell and method, as columns of a row."""
    found = {}
    for path in sorted(old.glob("answers/*/*/*/[!.]*.parquet")):
        dataset, backbone, tier = path.parts[-4:-1]
        shots, _, rest = path.name.partition(".")[0].removeprefix("K").partition("-s")
        seed, _, profile = rest.partition("-")
        cell = Cell(dataset, backbone, tier, int(shots), int(seed), profile or "balanced")
        table = pq.read_table(path)
        for method in table["method"].unique().to_pylist():
            part = table.filter(pc.field("method") == method)
            columns = {name: part[old_name].fill_null(0).to_numpy() for name, old_name in OLD_ANSWERS.items()}
            found[cell, method] = columns | {"answered": True}
    return found


if __name__ == "__main__":
    print(f"adopted {adopt(Path(sys.argv[1]), Path(sys.argv[2]))} records")
