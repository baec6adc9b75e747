"""The paper cut small: ten datasets in the hub's layout from digits, five encoders, and the studies' files.

Test pictures are chosen so that the zero-shot accuracy of ViT-B-16 lies in the published band of every dataset but
Pets. SUN397 is not served.
"""

import io
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from kshot.data.catalog import datasets, distributed
from kshot.data.episode import self_split
from kshot.encode.openclip import OpenClipEncoder, load_open_clip
from kshot.encode.prompts import encode_tier, from_templates
from kshot.encode.sentences import kept_sentences
from picture_sets import CONFIG, add, write_clip, write_siglip

MISSING, OUTSIDE = "SUN397", "Pets"
CLASSES, POOL, TEST, CAP, SHARD = 10, 9, 6, 8, 64
TEMPLATES = ("a photo of a {c}.", "a picture of {c}.")
ENCODERS = ("RN50", "ViT-B-32", "ViT-B-16", "ViT-L-14", "SigLIP-B-16")
GATE = "ViT-B-16"

AXES = """pool_cap = 8
datasets = [DATASETS]
backbones = ["RN50", "ViT-B-32", "ViT-B-16", "ViT-L-14", "SigLIP-B-16"]
shots = [1, 2]
seeds = [0]
"""
STUDIES = {
    "paper": AXES
    + """[[grid]]
tiers = ["dataset"]
methods = ["zero_shot", "ncm", "loo_blend", "gda_alpha1", "oracle_lambda", "tip_adapter_test"]
[[grid]]
tiers = ["photo", "ensemble", "cupl"]
methods = ["zero_shot", "ncm"]
""",
    "textfree": AXES.replace('"RN50", "ViT-B-32", "ViT-B-16", "ViT-L-14", "SigLIP-B-16"', '"DINOv2-B-14", "ViT-B-16"')
    + 'tiers = ["dataset"]\nmethods = ["logistic_probe"]\n',
    "augmentation": AXES
    + """tiers = ["dataset"]
[[grid]]
views = { recipe = "clap", count = 3 }
methods = ["ncm"]
[[grid]]
views = { recipe = "clap", count = 2 }
methods = ["gda_alpha1"]
""",
}


def write_studies(folder: Path) -> None:
    """A file of the folder comes before the package's study of that name."""
    quoted = ", ".join(f'"{name}"' for name in distributed())
    for name, content in STUDIES.items():
        (folder / name).write_text(f'name = "{name}"\n{content.replace("DATASETS", quoted)}')


def classes_of(dataset: str) -> list[str]:
    return [name for name, _ in kept_sentences()[dataset][:CLASSES]]


def write_encoders(root: Path) -> dict[str, Path]:
    """Tiny ones of each architecture; the text of the one that the gate asks lies near its pictures."""
    vision = CONFIG["model_cfg"]["vision_cfg"]
    wide = {"width": 256, "heads": 4}
    folders = {
        "RN50": write_clip(root / "RN50", 1, {"image_size": 32, "layers": [1, 1, 1, 1], "width": 16}),
        "ViT-B-32": write_clip(root / "ViT-B-32", 2, vision | {"patch_size": 16}),
        "ViT-B-16": write_clip(root / "ViT-B-16", 3, vision | {"width": 192}, wide),
        "ViT-L-14": write_clip(root / "ViT-L-14", 4, vision | {"layers": 3}),
    }
    names = [name for dataset in distributed() for name in classes_of(dataset)]
    words = sorted({word for name in names for word in name.lower().split()} - {"a", "photo", "of"})
    folders["SigLIP-B-16"] = write_siglip(root / "SigLIP-B-16", ["a", "photo", "of", *words])
    align_text(folders[GATE])
    return folders


def align_text(folder: Path) -> None:
    """Set the last layer of the text tower so that the prompts of a class lie at the mean of its pictures."""
    import torch
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "open_clip_model.safetensors")
    encoder = load_open_clip(GATE, folder)
    rows = range(0, 300, 2)
    # Pictures: a projection that tells the digits apart, whatever the dataset.
    encoder.model.visual.proj = torch.nn.Parameter(torch.eye(192))
    batches = [np.stack([encoder.preprocessing(picture(d, row)) for row in rows]) for d in distributed()]
    X = np.concatenate([encoder.pooled(batch) for batch in batches]).astype(float)
    y = np.tile(digits()[1][list(rows)], len(distributed()))
    codes = np.eye(CONFIG["model_cfg"]["embed_dim"])[y] - 0.1
    proj = np.linalg.solve(X.T @ X + 1e-3 * len(X) * np.eye(192), X.T @ codes)
    state["visual.proj"] = torch.from_numpy(proj.astype(np.float32))
    features = np.split(X @ proj, len(distributed()))
    target = []
    for own in (own / np.linalg.norm(own, axis=1, keepdims=True) for own in features):
        means = np.stack([own[y[: len(rows)] == label].mean(0) for label in range(CLASSES)])
        target.append(means - means.mean(0))
    prompts = [p for d in distributed() for own in from_templates(classes_of(d), TEMPLATES) for p in own]
    encoder.model.text_projection = torch.nn.Parameter(torch.eye(256))
    with torch.inference_mode():
        before = encoder.model.encode_text(encoder.tokenizer(prompts)).numpy().astype(float)
    wanted = np.repeat(np.concatenate(target), len(TEMPLATES), axis=0)
    solved = np.linalg.lstsq(before, wanted, rcond=1e-6)[0]
    state["text_projection"] = torch.from_numpy((10 * solved).astype(np.float32))
    save_file(state, folder / "open_clip_model.safetensors")


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def picture(dataset: str, row: int) -> Image.Image:
    """A real digit, turned and tinted in the dataset's own way."""
    number = list(distributed()).index(dataset)
    grey = Image.fromarray((digits()[0][row].reshape(8, 8) * 15).astype(np.uint8)).resize((32, 32), Image.BICUBIC)
    turned = np.asarray(grey.rotate(36 * number), float)[:, :, None]
    tint = 0.4 + 0.6 * np.array([number % 2, number // 2 % 2, number // 4 % 2])
    return Image.fromarray((turned * tint).astype(np.uint8))


def encoded(encoder: OpenClipEncoder, dataset: str, rows) -> np.ndarray:
    return encoder.encode_images([encoder.preprocessing(picture(dataset, row)) for row in rows])


def write_hub(root: Path, gate: Path) -> Path:
    """Shards of all datasets but the missing one."""
    encoder = load_open_clip(GATE, gate)
    for dataset, wds in distributed().items():
        if dataset != MISSING:
            name = wds.replace("/", "-")
            write_dataset(root / f"datasets/clip-benchmark/wds_{name}/resolve/main", dataset, encoder)
    return root


def write_dataset(root: Path, dataset: str, encoder: OpenClipEncoder) -> None:
    (root / "test").mkdir(parents=True)
    (root / "classnames.txt").write_text("\n".join(classes_of(dataset)) + "\n")
    (root / "zeroshot_classification_templates.txt").write_text("\n".join(TEMPLATES) + "\n")
    y = digits()[1]
    candidates = range(1, 1000, 2)
    prompts = from_templates(classes_of(dataset), TEMPLATES)
    text = encode_tier(encoder.encode_prompts, prompts).unit
    right = (encoded(encoder, dataset, candidates) @ text.T).argmax(1) == y[list(candidates)]
    entry = datasets()[dataset]
    low, high = entry.band if dataset != OUTSIDE else (0, 40)
    ordered = np.random.default_rng(0).permutation(candidates).tolist()
    found = dict(zip(candidates, right.tolist(), strict=True))
    if entry.split == "self":
        # Labels decide which places are test pictures, so they come first.
        labels = np.arange(CLASSES * (POOL + TEST)) % CLASSES
        ids = [f"test/{n // SHARD}/s{n:07d}" for n in range(len(labels))]
        tested = ~self_split(dataset, ids, labels)
        count, chosen = round((low + high) / 200 * tested.sum()), []
        for place, label in enumerate(labels):
            fitting = [row for row in ordered if y[row] == label and found[row] == bool(count > 0 and tested[place])]
            chosen.append((fitting or [row for row in ordered if y[row] == label])[0])
            count -= found[chosen[-1]] and tested[place]
            ordered.remove(chosen[-1])
    else:
        count = round((low + high) / 200 * CLASSES * TEST)
        rights, wrongs = ([row for row in ordered if found[row] == ok] for ok in (True, False))
        chosen = [*rights[:count], *wrongs[: CLASSES * TEST - count]]
        write_split(root / "train", dataset, [spare(y, n % CLASSES, n // CLASSES) for n in range(CLASSES * POOL)])
    write_split(root / "test", dataset, chosen)


def spare(y: np.ndarray, label: int, number: int) -> int:
    """A picture for the pool, which no test picture is chosen from."""
    return int(np.flatnonzero((y == label) & (np.arange(len(y)) >= 1000))[number])


def write_split(folder: Path, dataset: str, rows: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    shards = -(-len(rows) // SHARD)
    (folder / "nshards.txt").write_text(f"{shards}\n")
    y = digits()[1]
    for shard in range(shards):
        with tarfile.open(folder / f"{shard}.tar", "w") as archive:
            for number in range(shard * SHARD, min(len(rows), (shard + 1) * SHARD)):
                out = io.BytesIO()
                picture(dataset, rows[number]).save(out, "PNG")
                add(archive, f"s{number:07d}.png", out.getvalue())
                add(archive, f"s{number:07d}.cls", str(y[rows[number]]).encode())
