"""Encoders by the names of the catalog, by any name that open_clip knows, or as hf:ORG/NAME of transformers."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from kshot.data.catalog import backbones
from kshot.encode.hf import PREFIX, load_transformers, local_folder
from kshot.encode.hub import offline_reason
from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import Encoder, PromptFeatures, TorchEncoder, import_torchvision, pick_device
from kshot.errors import InputError, KshotError, first_line, need, unknown
from kshot.files import real_path

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# The CLIP that `kshot fit` suggests instead of a small encoder: the one of most published numbers.
CLIP = "openai/clip-vit-base-patch16"


def load_encoder(name: str, weights: Path | None = None, device: str = "auto") -> Encoder:
    """Load a backbone of the catalog, MODEL/WEIGHTS of open_clip, or hf:ORG/NAME of transformers.

    `weights` is a local checkpoint.
    """
    if weights is not None:
        check_exists(weights)
    need("torch", "hf" if name.startswith(PREFIX) else "encode")
    device = pick_device(device)
    encoder = _loaded(name, weights, device)
    encoder.backbone, encoder.loaded = name, (name, weights and weights.absolute(), device)
    return encoder


def check_exists(weights: Path) -> None:
    if not weights.exists():
        raise KshotError(f"there is no checkpoint at {weights}.")


def _loaded(name: str, weights: Path | None, device: str) -> Encoder:
    from kshot.encode import lite

    if weights is not None and (name in lite.VARIANTS or name.startswith(PREFIX)):
        raise KshotError(f"{name} brings its own weights; leave --weights out.")
    if name.startswith(PREFIX):
        return load_transformers(name, device)
    if name in lite.VARIANTS:
        return lite.LiteEncoder(name, device)
    if name in VISION:
        return VisionEncoder(name, weights, device)
    from kshot.encode.openclip import known_models, load_open_clip

    model, tag = open_clip_names(name)
    if model not in known_models():
        known = [*backbones(), *known_models()]
        raise KshotError(unknown("backbone", name, known, "List them with `kshot ls backbones`, or give hf:ORG/NAME."))
    return load_open_clip(model, weights or tag, device)


def stronger_backbone(name: str) -> str | None:
    """A CLIP that can be loaded here instead of a small encoder: from the hub's cache, or with a connection."""
    from kshot.encode import lite

    if name not in lite.VARIANTS or find_spec("transformers") is None:
        return None
    from huggingface_hub import try_to_load_from_cache

    cached = isinstance(try_to_load_from_cache(CLIP, "config.json"), str)
    return f"{PREFIX}{CLIP}" if cached or offline_reason() is None else None


def open_clip_names(name: str) -> tuple[str, str]:
    """open_clip's model and tag of a backbone of the catalog, or of MODEL/WEIGHTS."""
    entry = backbones().get(name)
    if entry is not None and entry.open_clip is not None:
        return entry.open_clip
    model, _, tag = name.partition("/")
    return model, tag


def local_weights(names: Sequence[str], given: Sequence[str]) -> dict[str, Path]:
    """The checkpoint of each backbone that was given one: PATH where there is one backbone, else BACKBONE=PATH."""
    found = {}
    for text in given:
        name, equals, path = text.partition("=")
        if equals and name in names:
            found[name] = Path(path)
        elif len(names) == len(given) == 1:
            found[names[0]] = Path(text)
        else:
            raise InputError(f"--weights {text}: write BACKBONE=PATH with one of the backbones {', '.join(names)}.")
    for path in found.values():
        check_exists(path)
    return found


def stored_name(name: str) -> str:
    """The backbone's name in the store, with + for / : and @; of hf:./FOLDER the folder's name."""
    folder = local_folder(name) if name.startswith(PREFIX) else None
    return f"hf+{real_path(folder).name}" if folder else re.sub("[/:@]", "+", name)


class VisionModel(NamedTuple):
    """timm's model and tag, and how its pictures are prepared."""

    model: str
    tag: str
    preprocessing: Preprocessing


VISION = {
    "DINOv2-B-14": VisionModel(
        "vit_base_patch14_dinov2", "lvd142m", Preprocessing(224, IMAGENET_MEAN, IMAGENET_STD, resize_to=256)
    ),
    "DINOv3-B-16": VisionModel(
        "vit_base_patch16_dinov3", "lvd1689m", Preprocessing(224, IMAGENET_MEAN, IMAGENET_STD, "squash", "bilinear")
    ),
}


class VisionEncoder(TorchEncoder):
    """The class token after the last layer norm."""

    text = False
    logit_scale = None
    logit_bias = None
    library = "timm"

    def __init__(self, name: str, weights: Path | None = None, device: str = "cpu"):
        import_torchvision()
        timm = need("timm", "encode")
        model, tag, preprocessing = VISION[name]
        try:
            network = timm.create_model(
                f"{model}.{tag}",
                pretrained=True,
                pretrained_cfg_overlay={"file": str(weights)} if weights is not None else None,
                img_size=preprocessing.pixels,
                num_classes=0,
            )
        except Exception as error:  # a checkpoint can be broken in as many ways as there are readers of it
            advice = "Offline, give a checkpoint with --weights."
            raise KshotError(f"cannot load {name}: {first_line(error)}. {advice}") from None
        super().__init__(network, preprocessing, device, model, type(network.blocks[0].mlp.act).__name__)

    def tower(self, batch: Any) -> Any:
        return self.model.forward_features(batch)[:, 0]

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        raise KshotError(f"{self.name} has no text tower; leave --tier out.")
