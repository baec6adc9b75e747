"""Which datasets a source on the command line stands for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kshot.data.catalog import COOP_SUFFIX, PAPER, datasets, distributed, how_to_encode
from kshot.encode.coop_pictures import PROTOCOL, catalog_name, coop_source, is_split_file
from kshot.encode.sources import find_source
from kshot.encode.sources.http import is_url
from kshot.encode.sources.source import Source
from kshot.errors import InputError, KshotError, unknown
from kshot.files import real_path, safe_name

PLACE = "{wds}"


@dataclass(frozen=True, slots=True)
class Origin:
    """One dataset and where its pictures are."""

    dataset: str
    where: str
    evaluation_only: bool = False
    licence: str = ""
    template: str | None = None
    protocol: str = ""

    def open(self, keep: Path | None = None) -> Source:
        """Shards that are fetched stay in `keep`/DATASET if that is given."""
        if self.protocol == PROTOCOL:
            return coop_source(Path(self.where))
        return find_source(self.where, self.evaluation_only, keep and keep / self.dataset)


def find_origins(where: str, names: Sequence[str]) -> list[Origin]:
    """One source under one name, or a pattern with {wds} for several datasets of the catalog."""
    if PLACE not in where:
        if len(names) > 1:
            raise InputError(f"{len(names)} datasets for one source; put {PLACE} where their names differ.")
        if is_split_file(where):
            return [_coop_origin(safe_name("dataset", names[0] if names else catalog_name(Path(where))), where)]
        if where in datasets() and not Path(where).exists():
            raise InputError(f"there is no folder {where}; the dataset of that name: {how_to_encode([where])}")
        return [_origin(safe_name("dataset", names[0]) if names else _own_name(where), where)]
    known = distributed()
    wanted = list(known) if list(names) == [PAPER] else list(names)
    if not wanted:
        raise InputError(f"{PLACE} needs --dataset: `{PAPER}` for the paper's ten, or names of the catalog.")
    for name in wanted:
        if name not in known:
            raise InputError(unknown("dataset", name, [PAPER, *known], "See `kshot ls datasets`."))
    # clip-benchmark's repositories write the slash of vtab/pets as a dash.
    return [_origin(name, where.replace(PLACE, known[name].replace("/", "-"))) for name in wanted]


def _origin(name: str, where: str) -> Origin:
    entry = datasets().get(name)
    if entry is None:
        return Origin(name, where)
    return Origin(name, where, entry.split == "self", entry.licence, entry.template)


def _coop_origin(name: str, where: str) -> Origin:
    """A name of its own, so that one store holds a dataset on both kinds of splits."""
    entry = datasets().get(name)
    template = None if entry is None else entry.template
    return Origin(f"{name}{COOP_SUFFIX}", where, template=template, protocol=PROTOCOL)


def _own_name(where: str) -> str:
    if is_url(where):
        raise InputError("give the dataset a name with --dataset NAME.")
    try:
        return safe_name("dataset", real_path(Path(where)).stem)
    except KshotError as error:
        raise InputError(f"{error} Or name the dataset with --dataset NAME.") from None
