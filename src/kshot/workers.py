"""Who computes: processes of this machine or of a cluster, through joblib, and shares of a job for SLURM.

Whatever is computed is written whole or not at all, so a worker that dies leaves its work missing.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

from kshot.errors import InputError, KshotError, need, unknown
from kshot.progress import Progress

BACKENDS = ("loky", "dask:ADDRESS")
SECONDS_BETWEEN_LOOKS = 1.0
SAFE_PATH = "PYTHONSAFEPATH"


class Shard(NamedTuple):
    """Part `index` of `count`."""

    index: int = 0  # pyright: ignore[reportIncompatibleMethodOverride]
    count: int = 1  # pyright: ignore[reportIncompatibleMethodOverride]

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read i/n."""
        index, slash, count = text.partition("/")
        if slash and index.isdecimal() and count.isdecimal() and int(index) < int(count):
            return cls(int(index), int(count))
        raise InputError(f"shard '{text}' is not of the form i/n with 0 ≤ i < n, for example 0/4.")


WHOLE = Shard()


@dataclass(frozen=True)
class Workers:
    """How many processes, and where: `loky` on this machine, `dask:ADDRESS` on a running cluster of dask."""

    count: int = os.cpu_count() or 1
    backend: str = "loky"

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise KshotError(f"workers must be a whole number from 1 up, not {self.count!r}.")
        if self.backend != "loky" and not (isinstance(self.backend, str) and self.backend.startswith("dask:")):
            raise KshotError(unknown("backend", str(self.backend), BACKENDS, "For SLURM see `kshot run --sbatch`."))

    @contextmanager
    def joined(self) -> Iterator[int]:
        """Use these workers inside the block; yields how many tasks are handed out at once."""
        from joblib import parallel_config

        if self.backend == "loky":
            backend = "sequential" if self.count == 1 else "loky"
            with parallel_config(
                backend, n_jobs=self.count, **({} if self.count == 1 else {"inner_max_num_threads": 1})
            ):
                yield 2 * self.count
            return
        client = need("distributed", "dask").Client(self.backend.partition(":")[2])
        try:
            with parallel_config("dask", n_jobs=-1):
                yield 4 * max(1, len(client.scheduler_info()["workers"]))
        finally:
            client.close()


def computed(jobs: Iterable[Any]) -> Iterator[Any]:
    """The results of joblib's delayed calls as they come, by the workers that are joined."""
    from joblib import Parallel

    results: Any = None
    try:
        with apart(), _deaf():
            pool = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")  # pyright: ignore[reportArgumentType]
            results = pool(jobs)
        for result in results:  # noqa: UP028 (closed below, where joblib would warn of what was interrupted)
            yield result
    finally:
        if results is not None:
            with catch_warnings():
                simplefilter("ignore")
                results.close()


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C, which would end them with a traceback: their driver ends them."""
    from multiprocessing.resource_tracker import ensure_running

    from joblib.externals.loky.backend.resource_tracker import ensure_running as ensure_of_loky

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Who starts one of these hears it again.
    ensure_running()
    ensure_of_loky()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def apart() -> Iterator[None]:
    """Start processes that do not look for the modules of Python and of libraries in the current folder."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH)
        if before is not None:
            os.environ[SAFE_PATH] = before


def ticker(pulse: str) -> Callable[..., None]:
    """Count what this process finished; other machines have no such folder."""
    place = Path(pulse) / str(os.getpid())

    def tick(count: int = 1) -> None:
        with suppress(OSError), place.open("a") as file:
            file.write("." * count)

    return tick


@contextmanager
def counted(pulse: Path, progress: Progress) -> Iterator[None]:
    """Show what the workers counted, every second and at the end."""
    ended, before = threading.Event(), progress.count

    def look() -> None:
        done = before + sum(path.stat().st_size for path in pulse.iterdir())
        if done > progress.count:
            progress.advance(min(done, progress.total or done) - progress.count)

    def watch() -> None:
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        look()


@cache
def end_with(driver: int) -> None:
    """End this worker when its driver was killed; cells are written whole or not at all."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    if os.getppid() == driver:
        threading.Thread(target=watch, daemon=True).start()
