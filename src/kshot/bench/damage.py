"""Which file of a records folder stops its reader."""

from collections.abc import Iterable
from pathlib import Path

from kshot.errors import StudyError


def damaged_file(paths: Iterable[Path]) -> StudyError | None:
    """The error about the first file that is there and cannot be read; reads all, so only after something broke."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in paths:
        try:
            pq.read_table(path)
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError):
            return StudyError(f"{path} is damaged. Delete it; `kshot run` then computes its cells again.")
    return None
