"""Contrastive encoders of open_clip: by pretrained name from the hub, or from a local checkpoint."""

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kshot.encode.hub import loading
from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import PromptFeatures, TorchEncoder, import_torchvision, model_number, unit_and_norms
from kshot.errors import KshotError, need

ONLINE_ONCE = "Run it once with a connection, or give weights (for SigLIP a folder with its tokenizer) with --weights."


@cache
def _library() -> Any:
    import_torchvision()
    return need("open_clip", "encode")


def known_models() -> list[str]:
    return _library().list_models()


def load_open_clip(model: str, weights: str | Path, device: str = "cpu") -> "OpenClipEncoder":
    """Load a model; `weights` is a pretrained tag, a checkpoint, or a folder of open_clip_config.json and weights."""
    library, name = _library(), model
    if isinstance(weights, Path) and weights.is_dir():
        model, tag = f"local-dir:{weights}", None
    elif weights:
        tag = str(weights)
    else:
        tags = ", ".join(library.list_pretrained_tags_by_model(model)) or "none"
        raise KshotError(f"{model} needs weights: --backbone {model}/TAG (known: {tags}) or --weights FILE.")
    # The tokenizer is loaded first: if it is missing, no gigabytes of weights are fetched.
    tokenizer = _tokenizer(library, model)
    return OpenClipEncoder(name, _create(library, model, tag), tokenizer, device)


class OpenClipEncoder(TorchEncoder):
    """A model of open_clip; without `device` it stays where it is."""

    library = "open_clip"

    def __init__(self, name: str, network: Any, tokenizer: Any, device: Any = None):
        self.tokenizer = tokenizer
        preprocessing = _preprocessing(_library().get_model_preprocess_cfg(network))
        self.logit_scale = float(network.logit_scale.detach().exp())
        self.logit_bias = model_number(network, "logit_bias")
        device = next(network.parameters()).device if device is None else device
        super().__init__(network, preprocessing, device, name, _activation(network))

    def tower(self, batch: Any) -> Any:
        return self.model.encode_image(batch)

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        return unit_and_norms(self.run(self.model.encode_text, text=self.tokenizer(list(prompts)).numpy()))


def _tokenizer(library: Any, model: str) -> Any:
    """open_clip's own, or for SigLIP one of transformers, from the folder of the weights or from the hub."""
    local = model.startswith("local-dir:")
    beside = "Put tokenizer.json and tokenizer_config.json beside the weights."
    with loading(f"the tokenizer of {model}", beside if local else ONLINE_ONCE, "encode", from_hub=not local):
        return library.get_tokenizer(model)


def _create(library: Any, model: str, tag: str | None) -> Any:
    """The model in float32. open_clip only warns when weights were trained with another activation; we stop."""
    from_hub = tag is not None and not Path(tag).exists()
    with loading(f"{model} with weights '{tag}'", ONLINE_ONCE, "encode", from_hub), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="QuickGELU mismatch")
        try:
            return library.create_model(model, pretrained=tag, require_pretrained=True, precision="fp32")
        except UserWarning as mismatch:
            raise KshotError(
                f"{model} has another activation than the weights '{tag}' were trained with ({mismatch}). "
                f"Use {model.removesuffix('-quickgelu')}{'' if model.endswith('-quickgelu') else '-quickgelu'}."
            ) from None


def _preprocessing(config: dict[str, Any]) -> Preprocessing:
    size = config["size"]
    pixels = size if isinstance(size, int) else size[0]
    if config["mode"] != "RGB" or config["resize_mode"] not in ("shortest", "squash"):
        raise KshotError(f"kshot cannot reproduce the preprocessing {config}; allowed are RGB, shortest or squash.")
    return Preprocessing(
        pixels, tuple(config["mean"]), tuple(config["std"]), config["resize_mode"], config["interpolation"]
    )


def _activation(model: Any) -> str:
    """Class names of the activations that occur, so that GELU and QuickGELU leave different manifests."""
    names = {type(module).__name__ for module in model.modules()}
    return "+".join(sorted(name for name in names if "GELU" in name or "ReLU" in name or name == "SiLU"))
