"""What the reproduction takes before it begins: gigabytes, encodings, disk, processor time and wall time."""

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kshot.bench.forecast import BASIS, forecast
from kshot.bench.query import query
from kshot.bench.records import Records
from kshot.bench.strata import Sizes, from_catalog
from kshot.data.catalog import COOP_SUFFIX, backbones, dataset_entry
from kshot.data.store import Store
from kshot.encode.targets import Draws
from kshot.errors import KshotError
from kshot.files import write_text
from kshot.paper.features import Needs, wanted_features
from kshot.paper.reproduce import Selection
from kshot.progress import human_bytes, human_seconds
from kshot.report.table import Table, count

TIMINGS = "timings.json"
# ViT-B/32 on a machine whose torch could not be asked: both cores of a Xeon of 2.1 GHz at half load, in float32.
KEPT_SPEED, KEPT_DEVICE = 25.0, "a kept table of two Xeon cores, as torch is not installed here"
TIMED, PICTURES = "ViT-B-32", 4
BYTES_PER_NUMBER = 2


@dataclass(frozen=True)
class Encodings:
    """One dataset: pictures to encode, encodings of pictures and of views, multiply-adds, and bytes."""

    pictures: int
    encodings: int
    views: int
    gmacs: float
    disk: int


def plan_tables(features: Path, records: Path, choice: Selection, workers: int, device: str = "auto") -> list[Table]:
    """What is still to be fetched and encoded, and what each arm still takes."""
    speed = encoder_speed(records, device)
    return [_datasets_table(features, choice, speed), _arms_table(features, records, choice, workers)]


def encodings(store: Store, dataset: str, needs: Needs) -> Encodings:
    """Counts by the catalog; a pool picture is in some of the draws by chance, which views need."""
    lacking = needs.lacking(store, dataset)
    sizes = {name: from_catalog(dataset, name, needs.pool_cap) for name in needs.tiers}
    pictures = next((size.n_test + size.n_pool for size in sizes.values()), 0)
    base = [name for name in lacking if not any(store.has(dataset, name, part) for part in ("pool", "all"))]
    viewed = {name: sum(v.count * drawn(sizes[name], draws) for v, draws in needs.views.items()) for name in lacking}
    viewed = {name: number for name, number in viewed.items() if name in needs.viewed}
    each = {name: pictures * (name in base) + viewed.get(name, 0) for name in lacking}
    gmacs = sum(number * (backbones()[name].gmacs or 0.0) for name, number in each.items())
    disk = sum(number * BYTES_PER_NUMBER * backbones()[name].dim for name, number in each.items())
    return Encodings(pictures if lacking else 0, pictures * len(base), sum(viewed.values()), gmacs, disk)


def drawn(sizes: Sizes, draws: Draws) -> int:
    """How many pictures some draw uses: every seed takes its largest K of a class, independently of the others."""
    shots: dict[int, int] = {}
    for k, seed, _ in draws:
        shots[seed] = max(k, shots.get(seed, 0))
    per_class = sizes.n_pool / sizes.classes
    unused = 1.0
    for k in shots.values():
        unused *= max(0.0, 1 - k / per_class)
    return round(sizes.n_pool * (1 - unused))


def encoder_speed(records: Path, device: str) -> tuple[float, str]:
    """Thousand million multiply-adds a second, and on what: kept beside the records, timed once on each machine."""
    kept, key = _timings(records), f"{platform.node()}, {device}"
    if key not in kept:
        try:
            timed = _timed(device)
            kept |= {key: timed, f"{platform.node()}, {timed['where']}": timed}
        except (KshotError, ImportError):
            return KEPT_SPEED, KEPT_DEVICE
        write_text(records / TIMINGS, json.dumps(kept, indent=1) + "\n")
    return kept[key]["gmacs_per_second"], f"{kept[key]['device']} of {platform.node()}, timed with {TIMED}"


def _timings(records: Path) -> dict[str, Any]:
    try:
        return json.loads((records / TIMINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _timed(device: str) -> dict[str, Any]:
    """Twelve blocks of the sizes of ViT-B/32 on a few pictures; its weights would not change the speed."""
    from kshot.encode.protocol import pick_device
    from kshot.errors import need

    torch = need("torch", "encode")
    where = pick_device(device)
    with torch.device("meta"):
        block = torch.nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True, norm_first=True)
    block = block.to_empty(device=where).eval()
    batch = torch.zeros((PICTURES if where == "cpu" else 16 * PICTURES, 50, 768), device=where)
    # Processor time, so that what else runs now does not count.
    clock, cores = (time.process_time, torch.get_num_threads()) if where == "cpu" else (time.perf_counter, 1)
    seconds = []
    with torch.inference_mode():
        for parameter in block.parameters():
            parameter.zero_()
        for _ in range(4):
            start, passed = clock(), batch
            for _ in range(12):
                passed = block(passed)
            passed.sum().item()
            seconds.append((clock() - start) / cores)
    speed = len(batch) * (backbones()[TIMED].gmacs or 0.0) / min(seconds)
    named = f"{torch.get_num_threads()} core(s)" if where == "cpu" else torch.cuda.get_device_name()
    return {"gmacs_per_second": speed, "device": named, "where": where}


def _datasets_table(features: Path, choice: Selection, speed: tuple[float, str]) -> Table:
    store, wanted = Store(features), wanted_features(choice.loaded(), choice.keep)
    parts: dict[str, list[tuple[float | int, ...]]] = {}
    for name, needs in wanted.items():
        entry, found = dataset_entry(name), encodings(store, name, needs)
        own = not name.endswith(COOP_SUFFIX)
        fetched = (entry.gigabytes or 0.0) if entry and found.pictures and own else 0.0
        counts = (fetched, found.pictures, found.encodings, found.views, found.gmacs, found.disk)
        parts.setdefault(name if own else "on CoOp's", []).append(counts)
    rows = [(name, *_shown(_sums(counts), speed[0])) for name, counts in parts.items()]
    whole = _sums([_sums(counts) for counts in parts.values()])
    return Table(
        key="plan_features",
        title="What is still to be fetched and encoded",
        columns=("dataset", "fetch", "pictures", "encodings", "of views", "time", "disk"),
        rows=(*rows, ("all", *_shown(whole, speed[0]))),
        caption=f"Time on {speed[1]}, others by their multiply-adds. Counts and gigabytes are the hub's. Shards of "
        "one dataset lie on disk until it is encoded. CoOp's splits need --coop FOLDER with their pictures.",
        rule=len(rows),
        below_rule="total",
    )


def _shown(values: Sequence[float | int], speed: float) -> tuple[str, ...]:
    fetched, pictures, encoded, views, gmacs, disk = values
    counts = (f"{round(number):,}" for number in (pictures, encoded, views))
    return (f"{fetched:.1f} GB", *counts, human_seconds(gmacs / speed), human_bytes(disk))


def _sums(rows: Sequence[Sequence[float | int]]) -> list[float | int]:
    return [sum(column) for column in zip(*rows, strict=True)] or [0.0] * 6


def _arms_table(features: Path, records: Path, choice: Selection, workers: int) -> Table:
    """Missing records, dropped cells and time of each arm; features need not be stored yet."""
    cache, rows, sums = Records(records), [], [0, 0, 0.0]
    for study in choice.loaded():
        named = {axis: getattr(choice, axis) for axis in ("backbones", "tiers") if getattr(choice, axis)}
        part = study.only(datasets={c.dataset for c in study.cells() if choice.keep(c)}, **named)
        if part.grids:
            asked = query(part, Store(features), must_be_stored=False)
            cost = forecast(asked, cache)
            numbers = (cost.missing, len(asked.dropped), cost.seconds)
            sums = [total + number for total, number in zip(sums, numbers, strict=True)]
            whole = len({(c.dataset, c.backbone) for c in study.cells()})
            stored = f"{len(asked.strata) - len(asked.unstored())} of {whole}"
            rows.append((study.name, stored, *map(count, numbers[:2]), *_cost(cost.seconds, workers)))
    return Table(
        key="plan",
        title="What each arm of the paper still takes",
        columns=("study", "pairs", "missing", "dropped", "one core", "wall"),
        rows=(*rows, ("all", "", *map(count, sums[:2]), *_cost(sums[2], workers))),
        caption="Pairs of dataset and encoder whose features are stored; records that are missing, cells dropped for a "
        f"thin pool; wall time with {workers} workers. {BASIS} Methods that were never timed are not counted.",
        rule=len(rows),
        below_rule="total",
    )


def _cost(seconds: float, workers: int) -> tuple[str, str]:
    return human_seconds(seconds), human_seconds(seconds / workers)
