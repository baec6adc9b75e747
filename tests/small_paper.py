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
from kshot.data.draw import self_split
from kshot.encode.openclip import OpenClipEncoder
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
seeds = [0, 1]
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
    "tiers": AXES + 'tiers = ["cupl"]\nmethods = ["lpp"]\n',
    "siglip2": AXES.replace('"RN50", "ViT-B-32", "ViT-B-16", "ViT-L-14", "SigLIP-B-16"', '"SigLIP2-B-16"')
    + 'tiers = ["dataset"]\nmethods = ["zero_shot"]\n',
    "textfree": AXES.replace('"RN50", "ViT-B-32", "ViT-B-16", "ViT-L-14", "SigLIP-B-16"', '"DINOv2-B-14", "ViT-B-16"')
    + 'tiers = ["dataset"]\nmethods = ["logistic_probe"]\n',
    "augmentation": AXES
    + """tiers = ["dataset"]
[[grid]]
views = { recipe = "clap", count = 3 }
methods = ["ncm"]
[[grid]]
views = { recipe = "tip", count = 2 }
methods = ["gda_alpha1"]
""",
    "coop": AXES + 'tiers = ["dataset"]\nmethods = ["zero_shot"]\n',
    "precision": AXES + 'dtype = "float64"\ntiers = ["dataset"]\nmethods = ["zero_shot", "ncm"]\n',
}


def write_studies(folder: Path) -> None:
    """A file of the folder comes before the package's study of that name."""
    quoted = ", ".join(f'"{name}"' for name in distributed())
    for name, content in STUDIES.items():
        names = quoted.replace('",', '-coop",').replace('397"', '397-coop"') if name == "coop" else quoted
        (folder / name).write_text(f'name = "{name}"\n{content.replace("DATASETS", names)}')


def classes_of(dataset: str) -> list[str]:
    return [name for name, _ in kept_sentences()[dataset][:CLASSES]]


def write_encoders(root: Path) -> dict[str, Path]:
    """Tiny ones of each architecture; the text of the one that the gate asks lies near its pictures."""
    vision = CONFIG["model_cfg"]["vision_cfg"]
    wide = {"width": 128, "heads": 4}
    folders = {
        "RN50": write_clip(root / "RN50", 1, {"image_size": 32, "layers": [1, 1, 1, 1], "width": 16}),
        "ViT-B-32": write_clip(root / "ViT-B-32", 2, vision | {"patch_size": 16}),
        "ViT-B-16": write_clip(root / "ViT-B-16", 3, vision, wide),
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
    encoder = OpenClipEncoder(GATE, folder)
    target = []
    for dataset in distributed():
        X = encoded(encoder, dataset, range(0, 400, 2))
        y = digits()[1][0:400:2]
        means = np.stack([X[y == label].mean(0) for label in range(CLASSES)])
        target.append(means - means.mean(0))
    prompts = [p for d in distributed() for own in from_templates(classes_of(d), TEMPLATES) for p in own]
    encoder.model.text_projection = torch.nn.Parameter(torch.eye(128))
    with torch.inference_mode():
        before = encoder.model.encode_text(encoder.tokenizer(prompts)).numpy()
    wanted = np.repeat(np.concatenate(target), len(TEMPLATES), axis=0)
    gram = before.T @ before + 1e-4 * np.trace(before.T @ before) / 128 * np.eye(128)
    solved = np.linalg.solve(gram, before.T @ wanted)
    state["text_projection"] = torch.from_numpy(10 * solved.astype(np.float32))
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
    return encoder.encode_images(np.stack([encoder.preprocessing(picture(dataset, row)) for row in rows]))


def write_hub(root: Path, gate: Path) -> Path:
    """Shards of all datasets but the missing one."""
    encoder = OpenClipEncoder(GATE, gate)
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
    candidates = range(1, 700, 2)
    prompts = from_templates(classes_of(dataset), TEMPLATES)
    text = encode_tier(encoder.encode_prompts, prompts).unit
    right = (encoded(encoder, dataset, candidates) @ text.T).argmax(1) == y[list(candidates)]
    entry = datasets()[dataset]
    low, high = entry.band if dataset != OUTSIDE else (0, 40)
    rows = {ok: [[r for r, o in zip(candidates, right, strict=True) if o == ok and y[r] == c] for c in range(10)]
            for ok in (True, False)}  # fmt: skip
    if entry.split == "self":
        number = CLASSES * (POOL + TEST)
        labels = np.arange(number) % CLASSES
        ids = [f"test/{n // SHARD}/s{n:07d}" for n in range(number)]
        tested = ~self_split(dataset, ids, labels)
    else:
        labels = np.arange(CLASSES * TEST) % CLASSES
        tested = np.ones(len(labels), bool)
        write_split(root / "train", dataset, [spare(y, n % CLASSES, n // CLASSES) for n in range(CLASSES * POOL)])
    count, chosen = round((low + high) / 200 * tested.sum()), []
    for place, label in enumerate(labels):
        wish = bool(count > 0 and tested[place])
        own = rows[wish][label] or rows[not wish][label]
        count -= bool(tested[place] and own is rows[True][label])
        chosen.append(own.pop())
    write_split(root / "test", dataset, chosen)


def spare(y: np.ndarray, label: int, number: int) -> int:
    """A picture for the pool, which no test picture is chosen from."""
    return int(np.flatnonzero((y == label) & (np.arange(len(y)) >= 700))[number])


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
