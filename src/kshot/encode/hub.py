"""Files of a dataset on the Hugging Face hub, fetched by `huggingface_hub` with its cache, tokens and offline mode.

A shard is removed when it was read, so that the disk does not fill. What was in the hub's cache before stays.
"""

import errno
import logging
import re
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from kshot.errors import InputError, KshotError, first_line, missing_extra, need
from kshot.files import sha256

HUB = "https://huggingface.co"
# {wds} stands for clip-benchmark's name of a dataset.
DATASETS = f"{HUB}/datasets/clip-benchmark/wds_{{wds}}/resolve/main"
SECONDS_TO_ANSWER = 5
# Seconds between attempts: eight minutes in all.
PAUSES = (1, 5, 30, 120, 300)
RETRIED = (408, 429, 500, 502, 503, 504)
_SHA256 = re.compile(r"[0-9a-f]{64}")
logger = logging.getLogger("kshot")
_ADDRESS = re.compile(r"(https?://.+?)/datasets/([^/]+/[^/]+?)(?:/(?:resolve|tree)/([^/]+))?/?")


def is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


class WrongChecksumError(Exception):
    """A file with other content than the hub announced."""


class HubDataset:
    """The dataset at HUB/datasets/OWNER/NAME or …/resolve/REVISION; fetched files stay in `keep` if that is given."""

    def __init__(self, url: str, keep: Path | None = None):
        found = _ADDRESS.fullmatch(url)
        if found is None:
            raise InputError(
                f"{url} is not the address of a dataset on a hub: {HUB}/datasets/OWNER/NAME. Fetch files of other "
                "servers yourself (wget -r) and give their folder."
            )
        endpoint, self.name, revision = found.groups()
        # HF_ENDPOINT may name a mirror of the hub.
        self.endpoint = None if endpoint == HUB else endpoint
        self.revision, self.keep = revision or "main", keep
        self.offline = offline_reason(self.endpoint)
        self.own: list[Path] = []
        self.verified: set[Path] = set()
        weakref.finalize(self, _remove, self.own)

    def find(self, file: str) -> Path | None:
        """Return the local copy of a file, or None where the dataset has no such file."""
        from huggingface_hub import errors, try_to_load_from_cache

        cached = try_to_load_from_cache(self.name, file, revision=self.revision, repo_type="dataset")
        fetched = self.keep is None and not isinstance(cached, str)
        path = Path()
        for pause in (*PAUSES, None):
            try:
                path = self._download(file)
                break
            except Exception as error:  # whatever the library or its HTTP client raises
                offline = isinstance(error, errors.LocalEntryNotFoundError)
                if isinstance(error, errors.EntryNotFoundError) and not offline:
                    return None
                if pause is None or self.offline or not _may_pass(error):
                    raise self._failure(file, error) from None
                wait = max(pause, _asked_to_wait(error))
                logger.warning(f"{file} of {self.name}: {first_line(error)}; again in {wait:.0f} s")
                time.sleep(wait)
        if fetched:
            self.own.append(path)
        return path

    def drop(self, path: Path) -> None:
        """Delete a file that this object fetched."""
        if path in self.own:
            self.own.remove(path)
            _remove([path])

    def _download(self, file: str) -> Path:
        from huggingface_hub import hf_hub_download

        options = {"repo_type": "dataset", "revision": self.revision, "endpoint": self.endpoint}
        local = {"local_dir": self.keep, "local_files_only": self.offline is not None}
        with warnings.catch_warnings():
            # It warns of a full disk before it writes.
            warnings.simplefilter("ignore")
            path = Path(hf_hub_download(self.name, file, **options, **local))
        self._verify(path, file)
        return path

    def _failure(self, file: str, error: Exception) -> KshotError:
        if any(getattr(cause, "errno", None) == errno.ENOSPC for cause in _causes(error)):
            what = f"the disk is full: cannot fetch {file} of {self.name}"
            return KshotError(f"{what}. Free some space and run the same command again.")
        # Without a connection the reason has no file name: equal reasons of many datasets are printed once.
        what = self.offline or f"cannot fetch {file} of {self.name}: {first_line(error)}"
        return KshotError(
            f"{what}. What is encoded is kept: run the same command again with a connection, log in (hf auth login), "
            "or give a local copy instead of the address."
        )

    def _verify(self, path: Path, file: str) -> None:
        """Hold a fetched shard to the sha256 that the hub announced; the library looks at its size only."""
        from huggingface_hub.file_download import get_hf_file_metadata, hf_hub_url

        if self.offline or path in self.verified or not file.endswith(".tar"):
            return
        url = hf_hub_url(self.name, file, repo_type="dataset", revision=self.revision, endpoint=self.endpoint)
        announced = get_hf_file_metadata(url).etag or ""
        if _SHA256.fullmatch(announced) and sha256(path) != announced:
            _remove([path])
            raise WrongChecksumError(f"its sha256 is not {announced[:16]}…, which the hub announced")
        self.verified.add(path)


@cache
def offline_reason(endpoint: str | None = None) -> str | None:
    """Why the hub cannot be reached, or None. Found in five seconds; the hub's library would try for a minute."""
    need("huggingface_hub", "encode")
    from huggingface_hub import constants
    from huggingface_hub.utils import disable_progress_bars, get_session

    disable_progress_bars()
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        get_session().head(endpoint or constants.ENDPOINT, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # whatever the library's HTTP client raises
        return f"the hub cannot be reached ({first_line(error)})"
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _may_pass(error: Exception) -> bool:
    """Whether a later attempt may succeed: a busy or broken hub, a lost connection, damage on the way."""
    for cause in _causes(error):
        status = getattr(getattr(cause, "response", None), "status_code", None)
        # By name, as versions of the library have different HTTP clients.
        lost = any(kind.__name__ in ("TransportError", "RequestException") for kind in type(cause).__mro__)
        if lost or status in RETRIED or isinstance(cause, WrongChecksumError) or "Consistency check" in str(cause):
            return True
    return False


def _asked_to_wait(error: Exception) -> float:
    """Seconds that the hub asked for in Retry-After, at most ten minutes."""
    for cause in _causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", {})
        if str(headers.get("Retry-After", "")).isdecimal():
            return min(600.0, float(headers["Retry-After"]))
    return 0.0


@contextmanager
def loading(what: str, advice: str, extra: str, from_hub: bool) -> Iterator[None]:
    """Turn every failure to load a model into one sentence; what the libraries log beside it is dropped."""
    need("huggingface_hub", extra)
    from huggingface_hub import constants

    offline, before = offline_reason() if from_hub else None, constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or offline is not None
    logging.disable(logging.CRITICAL)
    try:
        yield
    except KshotError:
        raise
    except ModuleNotFoundError as error:
        raise missing_extra(str(error.name).partition(".")[0], extra) from None
    except Exception as error:  # a checkpoint can be broken in as many ways as there are libraries that read it
        reason = f"{offline}, and it is not in the hub's cache" if offline else first_line(error)
        raise KshotError(f"cannot load {what}: {reason}. {advice}") from None
    finally:
        logging.disable(logging.NOTSET)
        constants.HF_HUB_OFFLINE = before


def _remove(files: list[Path]) -> None:
    """Delete files from the hub's cache: the link and the content behind it."""
    while files:
        link = files.pop()
        link.resolve().unlink(missing_ok=True)
        link.unlink(missing_ok=True)
