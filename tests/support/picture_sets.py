"""Small picture sets in the layouts that sources read, and a stand-in for the hub."""

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

PIXELS = 32
CLASSES = ("red", "green", "blue")
CONFIG = {
    "model_cfg": {
        "embed_dim": 24,
        "quick_gelu": True,
        "vision_cfg": {"image_size": PIXELS, "layers": 2, "width": 64, "patch_size": 8, "head_width": 32},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
    },
    "preprocess_cfg": {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25]},
}


def picture(label: int, number: int, size=(40, 30)) -> bytes:
    """A PNG whose colour says its class."""
    from PIL import Image

    rng = np.random.default_rng([label, number])
    values = rng.integers(0, 120, (size[1], size[0], 3), dtype=np.uint8)
    values[..., label] += 130
    out = io.BytesIO()
    Image.fromarray(values).save(out, "PNG")
    return out.getvalue()


def write_pictures(root: Path, per_class: int, classes: Sequence[str] = CLASSES) -> Path:
    """ROOT/CLASS/0.png, 1.png …"""
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for number in range(per_class):
            (root / name / f"{number}.png").write_bytes(picture(label, number))
    return root


def add(archive: tarfile.TarFile, name: str, content: bytes, **fields) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    archive.addfile(info, io.BytesIO(content))


def write_shards(root: Path, splits: dict[str, int], per_shard: int = 12) -> Path:
    """A set in clip-benchmark's layout."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "classnames.txt").write_text("\n".join(CLASSES) + "\n")
    (root / "zeroshot_classification_templates.txt").write_text("a photo of {c}.\nsomething {c}.\n")
    for split, shards in splits.items():
        (root / split).mkdir()
        (root / split / "nshards.txt").write_text(f"{shards}\n")
        for shard in range(shards):
            with tarfile.open(root / split / f"{shard}.tar", "w") as archive:
                for row in range(per_shard):
                    number = shard * per_shard + row
                    label = number % len(CLASSES)
                    add(archive, f"s{number:07d}.cls", str(label).encode())
                    seed = number if split == "train" else 10_000 + number
                    add(archive, f"s{number:07d}.png", picture(label, seed))
    return root


def write_clip(folder: Path, seed: int, vision: dict | None = None, text: dict | None = None) -> Path:
    """A CLIP of open_clip with weights drawn from the seed."""
    import torch
    from safetensors.torch import save_file

    from kshot.encode.protocol import import_torchvision

    import_torchvision()
    import open_clip

    whole = CONFIG["model_cfg"]
    model = whole | {"vision_cfg": vision or whole["vision_cfg"], "text_cfg": whole["text_cfg"] | (text or {})}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "open_clip_config.json").write_text(json.dumps(CONFIG | {"model_cfg": model}))
    torch.manual_seed(seed)
    save_file(open_clip.model.CLIP(**model).state_dict(), folder / "open_clip_model.safetensors")
    return folder


def write_siglip(folder: Path, vocabulary: Sequence[str]) -> Path:
    """SigLIP's kind of text tower in a folder: a tokenizer of transformers, sigmoid loss with a bias."""
    import torch
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from kshot.encode.protocol import import_torchvision

    import_torchvision()
    import open_clip

    words = {word: number for number, word in enumerate(["<pad>", "<unk>", *vocabulary])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", model_input_names=["input_ids"]
    ).save_pretrained(folder)
    text = {"context_length": 16, "vocab_size": len(words), "hf_tokenizer_name": "some/name-at-the-hub", "width": 32}
    text |= {"tokenizer_kwargs": {"clean": "canonicalize"}, "heads": 2, "layers": 1, "pool_type": "last"}
    text |= {"no_causal_mask": True, "proj_bias": True}
    model = CONFIG["model_cfg"] | {"text_cfg": text, "init_logit_bias": -10.0, "custom_text": True}
    (folder / "open_clip_config.json").write_text(json.dumps(CONFIG | {"model_cfg": model}))
    torch.manual_seed(0)
    made = open_clip.model.CustomTextCLIP(**{k: v for k, v in model.items() if k != "custom_text"})
    save_file(made.state_dict(), folder / "open_clip_model.safetensors")
    return folder


class Hub:
    """Serves a folder as the hub does; with `drops` it hangs up in the middle of every fifth answer of a tar file.

    `faults` are met one after the other by requests for tar files: a status such as 503, "other bytes" for damaged
    content, "redirect", a number below 1 for a connection that dies after that share of the bytes.
    """

    def __init__(self, root: Path, drops: bool = False, sizes: dict[str, int] | None = None, faults=(), wait="0"):
        outer = self
        self.requests: list[tuple[str, str | None]] = []
        self.root, self.drops, self.sizes, self.faults, self.wait = root, drops, sizes or {}, list(faults), wait

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                outer.answer(self, None)

            def do_GET(self):
                outer.requests.append((self.path, self.headers.get("Range")))
                outer.answer(self, self.headers.get("Range") or "bytes=0-")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request, wanted: str | None) -> None:
        """`wanted` is the range of a GET; without it only the headers that the hub's library asks for are sent."""
        path = self.root / request.path.split("?")[0].lstrip("/")
        fault = None
        if wanted and path.suffix == ".tar" and "?" not in request.path and self.faults:
            fault = self.faults.pop(0)
        if isinstance(fault, int) or fault == "redirect":
            request.send_response(302 if fault == "redirect" else fault)
            request.send_header("Retry-After", self.wait)
            if fault == "redirect":
                request.send_header("Location", f"{self.url}{request.path}?again")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if not path.is_file():
            request.send_response(404)
            request.send_header("X-Error-Code", "EntryNotFound")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        content = path.read_bytes()
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        request.send_response(206 if start else 200)
        request.send_header("X-Repo-Commit", "0" * 40)
        request.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        size = len(content) - start if wanted else self.sizes.get(path.name, len(content))
        request.send_header("Content-Length", str(size))
        request.end_headers()
        if wanted:
            drops = self.drops and path.suffix == ".tar" and len(self.requests) % 5 == 0
            end = len(content) // 2 if drops else int(fault * len(content)) if isinstance(fault, float) else None
            sent = bytes(len(content)) if fault == "other bytes" else content
            request.wfile.write(sent[start:end])
            request.close_connection = True

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
