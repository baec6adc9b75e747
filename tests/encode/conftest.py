import json
from pathlib import Path

import pytest

from picture_sets import CONFIG, DroppingServer, write_shards


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory) -> Path:
    """A folder with open_clip_config.json and weights drawn once from a fixed seed."""
    import torch
    from safetensors.torch import save_file

    from kshot.encode.torchvision_fix import import_torchvision

    import_torchvision()
    import open_clip

    folder = tmp_path_factory.mktemp("tiny_clip")
    (folder / "open_clip_config.json").write_text(json.dumps(CONFIG))
    torch.manual_seed(0)
    model = open_clip.model.CLIP(**CONFIG["model_cfg"])
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    return folder


@pytest.fixture
def shards(tmp_path) -> Path:
    return write_shards(tmp_path / "wds", {"train": 4, "test": 2})


@pytest.fixture
def serve():
    servers = []

    def start(root: Path, gate=None) -> DroppingServer:
        servers.append(DroppingServer(root, gate))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
