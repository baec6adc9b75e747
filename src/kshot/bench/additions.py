"""Whether a study may add to the records of another one, and the reason if not."""

from kshot.bench.study import MethodSpec, Study


def addable(study: Study, found: Study) -> list[str]:
    """Methods that only the folder's study has and `--method` can name."""
    if (study.name, study.dtype) != (found.name, found.dtype):
        return []
    own = study.methods()
    return [name for name, spec in found.methods().items() if name not in own and spec == MethodSpec(name, name)]


def contradiction(study: Study, found: Study) -> str | None:
    """Why records of the study `found` do not belong to `study`; None where they do."""
    if study.hash == found.hash or study.extends(found):
        return None
    return (
        f"holds records of study '{found.name}' with hash {found.hash}, but this is '{study.name}' with hash "
        f"{study.hash}, which {_shortfall(study, found)}; cells and methods may only be added."
    )


def _shortfall(study: Study, found: Study) -> str:
    if study.name != found.name:
        return "is another one"
    if study.supports != found.supports:
        return "uses other shots (--supports)"
    for rule in ("dtype", "min_residue", "pool_cap"):
        now, before = getattr(study, rule), getattr(found, rule)
        if now != before:
            return f"has {rule} {now} and not {before}"
    own, theirs, cells = study.methods(), found.methods(), study.cells()
    gone = [name for name in theirs if name not in own]
    changed = [name for name in theirs if name in own and own[name] != theirs[name]]
    lost = [cell for cell in found.cells() if cell not in cells]
    thinner = [
        cell
        for cell, specs in found.cells().items()
        if any(spec.name not in (*gone, *changed) and spec not in cells.get(cell, specs) for spec in specs)
    ]
    parts = [f"lacks the method{'s' if len(gone) > 1 else ''} {', '.join(gone)}"] if gone else []
    parts += [f"changes the method {name} (was {theirs[name]}, is {own[name]})" for name in changed]
    for cells_of, what in ((lost, "lacks {} cells"), (thinner, "has fewer methods in {} cells")):
        if cells_of:
            parts.append(f"{what.format(f'{len(cells_of):,}')}, such as {cells_of[0].in_words()}")
    return " and ".join(parts)
