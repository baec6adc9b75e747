"""Where pictures come from, and which kind of source a path or an address is."""

from pathlib import Path

from kshot.encode.sources.csv import csv_source
from kshot.encode.sources.http import is_url
from kshot.encode.sources.picture_folder import folder_source
from kshot.encode.sources.source import Source
from kshot.encode.sources.tables import find_tables, table_source
from kshot.encode.sources.webdataset import is_webdataset, webdataset_source
from kshot.errors import InputError


def find_source(where: str, evaluation_only: bool = False, keep: Path | None = None) -> Source:
    """A webdataset by its nshards.txt, a saved dataset by its tables, a CSV file by its suffix, else a folder of
    pictures; fetched shards stay in `keep` if that is given."""
    path = Path(where)
    if is_url(where) or (path.is_dir() and is_webdataset(where)):
        return webdataset_source(where, evaluation_only, keep)
    if path.is_dir() and (tables := find_tables(path)):
        return table_source(path, tables)
    if path.suffix.lower() == ".csv" and path.is_file():
        return csv_source(path)
    if path.is_dir():
        return folder_source(path)
    raise InputError(
        f"there is no source at {where}. Give a folder of pictures, a CSV file, a dataset saved by the `datasets` "
        "library, or webdataset shards (a folder or an http address)."
    )
