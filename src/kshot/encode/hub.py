"""The hub that holds clip-benchmark's datasets and open_clip's weights, and whether it can be reached from here."""

import os
import socket
import sys
from functools import cache
from urllib.parse import urlsplit

from kshot.errors import KshotError

HUB = "https://huggingface.co"
# {wds} stands for clip-benchmark's name of a dataset.
DATASETS = f"{HUB}/datasets/clip-benchmark/wds_{{wds}}/resolve/main"
SECONDS_TO_ANSWER = 5
OFFLINE = "HF_HUB_OFFLINE"


def require_connection(url: str) -> None:
    """Tell within seconds that an address cannot be reached, and what can be done without it."""
    if (reason := unreachable(url)) is not None:
        raise KshotError(
            f"no connection to {urlsplit(url).hostname} ({reason}). Encode a local copy of the shards: kshot encode "
            "FOLDER --dataset NAME --backbone …; or run the same command again with a connection."
        )


@cache
def spare_the_wait() -> str | None:
    """Why the hub cannot be reached; its library then looks into its cache alone instead of trying for a minute."""
    if os.environ.get(OFFLINE):
        return f"{OFFLINE} is set"
    reason = unreachable(os.environ.get("HF_ENDPOINT", HUB))
    if reason is not None:
        os.environ[OFFLINE] = "1"
        # The variable is only read when the library is imported.
        if (constants := sys.modules.get("huggingface_hub.constants")) is not None:
            constants.__dict__[OFFLINE] = True
    return reason


def unreachable(url: str) -> str | None:
    """The reason why nobody answers at an address; None where somebody does, or a proxy stands between."""
    # Late: every command imports this module for its names, and few ever connect.
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if parts.hostname is None or (getproxies().get(parts.scheme) and not proxy_bypass(parts.hostname)):
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), SECONDS_TO_ANSWER).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
