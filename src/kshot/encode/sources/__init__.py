"""Where pictures come from: the datasets and the kind of source that an argument of `kshot encode` names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kshot.data.catalog import COOP_SUFFIX, PAPER, datasets, distributed, how_to_encode
from kshot.encode.hub import is_url
from kshot.encode.sources.coop import PROTOCOL, catalog_name, coop_source, is_split_file
from kshot.encode.sources.picture_files import csv_source, folder_source
from kshot.encode.sources.source import Source
from kshot.encode.sources.tables import find_tables, table_source
from kshot.encode.sources.webdataset import is_webdataset, webdataset_source
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
        """Open the source; shards that are fetched stay in `keep`/DATASET if that is given."""
        return find_source(self.where, self.evaluation_only, keep and keep / self.dataset)


def find_source(where: str, evaluation_only: bool = False, keep: Path | None = None) -> Source:
    """Open a webdataset (address or nshards.txt), saved tables, a CoOp split, a CSV file, or a folder of pictures."""
    path = Path(where)
    if is_url(where) or is_webdataset(path):
        return webdataset_source(where, evaluation_only, keep)
    if is_split_file(where):
        source = coop_source(path)
    elif path.suffix.lower() == ".csv" and path.is_file():
        source = csv_source(path)
    elif path.is_dir():
        tables = find_tables(path)
        source = table_source(path, tables) if tables else folder_source(path)
    else:
        raise InputError(
            f"there is no source at {where}. Give a folder of pictures, a CSV file, a dataset saved by the `datasets` "
            "library, or webdataset shards (a folder or the address of a dataset on the hub)."
        )
    if not source.shards():
        raise InputError(f"{where} holds no pictures. Expected CLASS/picture.jpg, or train/CLASS/… and test/CLASS/….")
    return source


def find_origins(where: str, names: Sequence[str]) -> list[Origin]:
    """One source under one name, or a pattern with {wds} for several datasets of the catalog."""
    if PLACE not in where:
        if len(names) > 1:
            raise InputError(f"{len(names)} datasets for one source; put {PLACE} where their names differ.")
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
    template = entry.template if entry else None
    if is_split_file(where):
        # A name of its own, so that one store holds a dataset on both kinds of splits.
        return Origin(f"{name}{COOP_SUFFIX}", where, template=template, protocol=PROTOCOL)
    if entry is None:
        return Origin(name, where)
    return Origin(name, where, entry.split == "self", entry.licence, template)


def _own_name(where: str) -> str:
    if is_url(where):
        raise InputError("give the dataset a name with --dataset NAME.")
    path = real_path(Path(where))
    try:
        return safe_name("dataset", catalog_name(path) if is_split_file(where) else path.stem)
    except KshotError as error:
        raise InputError(f"{error} Or name the dataset with --dataset NAME.") from None
