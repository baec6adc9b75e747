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
    named_run,
)


def plan(
    study: StudyArgument,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    method: MethodOption = None,
) -> None:
    """Cells, time and disk of a study before anything runs; features need not be there yet."""
    from kshot.bench.plan import forecast
    from kshot.bench.work import find_work
    from kshot.features.store import Store

    loaded, target = named_run(study, method, records)
    work = find_work(loaded, Store(features), target, must_be_stored=False)
    expected = forecast(work)
    out = console()
    out.print(f"study {loaded.name}, hash {loaded.hash}, {loaded.dtype}", markup=False)
    out.print(f"cells    {len(work.cells):,}")
    out.print(
        f"dropped  {len(work.dropped):,} (a class would keep fewer than {loaded.least_residue} pool pictures)"
    )
    out.print(f"done     {work.done:,}")
    out.print(f"missing  {len(work.missing):,}")
    if work.unstored:
        listed = ", ".join(f"{dataset}/{backbone}" for dataset, backbone in work.unstored[:3])
        out.print(
            f"features {len(work.unstored)} of {len(work.strata)} strata not stored in {features}: {listed} …"
        )
    out.print(f"methods  {', '.join(loaded.methods())}", markup=False)
    out.print(
        f"time     about {human_seconds(expected.cpu_seconds)} of one core (each method timed here on two small cells)"
    )
    out.print(f"disk     about {human_bytes(expected.disk_bytes)}")
