"""`kshot plan`: what a run would do and cost."""

from kshot.cli.shared import (
    DEFAULT_FEATURES,
    FeaturesOption,
    MethodOption,
    RecordsOption,
    StudyArgument,
    console,
    human_bytes,
    human_seconds,
    own_modules,
    records_folder,
)


def plan(
    study: StudyArgument,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    method: MethodOption = None,
) -> None:
    """Cells, time and disk of a study before anything runs."""
    from kshot.bench.plan import estimate
    from kshot.bench.prepare import prepare
    from kshot.bench.records import Records
    from kshot.bench.study import load_study
    from kshot.features.store import Store

    own_modules()
    loaded = load_study(study).with_methods(method or [])
    store = Store(features)
    work = prepare(loaded, store, Records(records_folder(records, loaded.name)))
    forecast = estimate(work, store)
    out = console()
    out.print(f"study {loaded.name}, hash {loaded.hash}, {loaded.dtype}")
    out.print(f"cells    {len(work.cells)}")
    out.print(f"dropped  {len(work.dropped)} (smallest class would keep fewer than five pool pictures)")
    out.print(f"done     {len(work.done)}")
    out.print(f"missing  {len(work.missing)}")
    out.print(f"methods  {', '.join(loaded.methods())}")
    out.print(
        f"time     about {human_seconds(forecast.cpu_seconds)} on one core (each method timed on a probe)"
    )
    out.print(f"disk     about {human_bytes(forecast.disk_bytes)}")
