"""Files of a dataset on the Hugging Face hub, fetched by `huggingface_hub` with its cache, tokens and offline mode.

A shard is removed when the next one comes, so that the disk does not fill. What was in the hub's cache before stays.
"""

import re
import weakref
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kshot.errors import InputError, KshotError, need

HUB = "https://huggingface.co"
# {wds} stands for clip-benchmark's name of a dataset.
DATASETS = f"{HUB}/datasets/clip-benchmark/wds_{{wds}}/resolve/main"
SECONDS_TO_ANSWER = 5
_ADDRESS = re.compile(r"(https?://.+?)/datasets/([^/]+/[^/]+?)(?:/(?:resolve|tree)/([^/]+))?/?")


class Repository(NamedTuple):
    """A dataset of a hub at one revision; `endpoint` is None for the hub that HF_ENDPOINT names."""

    endpoint: str | None
    name: str
    revision: str


def is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


def parse_address(url: str) -> Repository:
    """Read HUB/datasets/OWNER/NAME, optionally with /resolve/REVISION or /tree/REVISION."""
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise InputError(
            f"{url} is not the address of a dataset on a hub: {HUB}/datasets/OWNER/NAME. Fetch files of other servers "
            "yourself (wget -r) and give their folder."
        )
    endpoint, name, revision = found.groups()
    return Repository(None if endpoint == HUB else endpoint, name, revision or "main")


class HubDataset:
    """Files of a repository, fetched when they are asked for; they stay in `keep` if that is given."""

    def __init__(self, url: str, keep: Path | None = None):
        self.repository, self.keep = parse_address(url), keep
        self.offline = offline_reason(self.repository.endpoint)
        self.own: list[Path] = []
        weakref.finalize(self, _remove, self.own)

    def find(self, name: str) -> Path | None:
        """Return the local copy of a file, or None where the repository has no such file."""
        from huggingface_hub import errors, hf_hub_download, try_to_load_from_cache

        endpoint, repository, revision = self.repository
        cached = try_to_load_from_cache(repository, name, revision=revision, repo_type="dataset")
        try:
            found = hf_hub_download(
                repository, name, revision=revision, repo_type="dataset", endpoint=endpoint, local_dir=self.keep
            )
        except errors.LocalEntryNotFoundError as error:
            raise KshotError(
                f"cannot fetch {name} of {repository}: {self.offline or first_line(error)}. Encode a local copy: kshot "
                "encode FOLDER --dataset NAME --backbone …; or run the same command again with a connection."
            ) from None
        except errors.EntryNotFoundError:
            return None
        except (errors.RepositoryNotFoundError, errors.GatedRepoError):
            raise KshotError(
                f"the hub has no dataset {repository} that you may read. Check its name, or log in: hf auth login."
            ) from None
        except Exception as error:  # whatever the library's HTTP client raises
            raise KshotError(
                f"{name} of {repository} could not be fetched ({first_line(error)}). What is encoded is kept: run the "
                "same command again."
            ) from None
        if self.keep is None and not isinstance(cached, str):
            _remove(self.own)
            self.own.append(Path(found))
        return Path(found)


@cache
def offline_reason(endpoint: str | None = None) -> str | None:
    """Why the hub cannot be reached, or None; its library then reads its cache alone instead of trying for a minute."""
    need("huggingface_hub", "encode")
    from huggingface_hub import constants
    from huggingface_hub.utils import disable_progress_bars, get_session

    disable_progress_bars()
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        get_session().head(endpoint or constants.ENDPOINT, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # whatever the library's HTTP client raises
        constants.HF_HUB_OFFLINE = True
        return f"the hub cannot be reached ({first_line(error)})"
    return None


def first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def _remove(files: list[Path]) -> None:
    """Delete what the hub's cache holds of these files: the link and the content behind it."""
    while files:
        link = files.pop()
        link.resolve().unlink(missing_ok=True)
        link.unlink(missing_ok=True)
