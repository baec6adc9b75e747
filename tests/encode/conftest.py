from pathlib import Path

import pytest

from picture_sets import Hub, write_clip, write_shards


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory) -> Path:
    """A folder with open_clip_config.json and weights drawn once from a fixed seed."""
    return write_clip(tmp_path_factory.mktemp("tiny_clip"), 0)


@pytest.fixture
def shards(tmp_path) -> Path:
    return write_shards(tmp_path / "wds", {"train": 4, "test": 2})


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Starts hubs; their library keeps what it fetches in tmp_path/hub-cache, here and in children."""
    from huggingface_hub import constants

    from kshot.encode.hub import offline_reason

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr("kshot.encode.hub.PAUSES", (0.01, 0.01, 0.01))
    servers = []

    def start(root: Path, **options) -> Hub:
        servers.append(Hub(root, **options))
        return servers[-1]

    offline_reason.cache_clear()
    yield start
    offline_reason.cache_clear()
    for server in servers:
        server.close()
