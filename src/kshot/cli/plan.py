"""`kshot plan`: what a run would do and cost."""

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, MethodOption, RecordsOption, StudyArgument, console


def plan(
    study: StudyArgument,
    method: MethodOption = None,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Cells, time and disk of a study before anything runs; features need not be there yet."""
    from kshot.bench.plan import FORECAST_BASIS, forecast
    from kshot.bench.records import Records, records_around, records_folder
    from kshot.bench.study import load_study
    from kshot.bench.work import find_work
    from kshot.data.store import Store
    from kshot.progress import human_seconds

    loaded = load_study(study).with_methods(method or [])
    # A study file may come from anywhere: only code that the user names on the command line is imported.
    strangers = [spec.use for spec in loaded.methods().values() if ":" in spec.use and spec.use not in (method or [])]
    target = Records(records_folder(records, loaded.name))
    work = find_work(loaded.without(strangers), Store(features), target, must_be_stored=False)
    (expected,) = forecast([work], records_around(target.folder.parent))
    out = console()
    out.print(f"study {loaded.name}, hash {loaded.hash}, {loaded.dtype}", markup=False)
    out.print(f"cells    {len(work.cells):,}")
    out.print(f"dropped  {len(work.dropped):,} (a class would keep fewer than {loaded.least_residue} pool pictures)")
    out.print(f"done     {work.done:,}")
    out.print(f"missing  {len(work.missing):,}")
    if work.unstored:
        listed = ", ".join(f"{dataset}/{backbone}" for dataset, backbone in work.unstored[:3])
        out.print(f"features {len(work.unstored)} of {len(work.strata)} strata not stored in {features}: {listed} …")
    out.print(f"methods  {', '.join(loaded.methods())}", markup=False)
    if strangers:
        out.print(
            f"not imported and not counted: {', '.join(strangers)}; `--method {strangers[0]}` says that you trust it",
            markup=False,
        )
    out.print(f"time     about {human_seconds(expected.cpu_seconds)} of one core")
    if expected.unknown:
        out.print(f"         without {', '.join(expected.unknown)}: no timings of these yet", markup=False)
    out.print(f"disk     about {human_bytes(expected.disk_bytes)}")
    out.print(f"memory   about {human_bytes(expected.memory_bytes)} of each worker")
    out.print(FORECAST_BASIS)


def human_bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit in ("B", "kB") else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
