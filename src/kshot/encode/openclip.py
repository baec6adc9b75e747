"""Contrastive encoders of open_clip: by pretrained name from the hub, or from a local checkpoint."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from kshot.encode.hub import first_line, offline_reason
from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import PromptFeatures, TorchEncoder, import_torchvision, unit_and_norms
from kshot.errors import KshotError, missing_extra, need

ONLINE_ONCE = "Run it once with a connection, or give weights (for SigLIP a folder with its tokenizer) with --weights."


@cache
def _library() -> Any:
    import_torchvision()
    return need("open_clip", "encode")


def known_models() -> list[str]:
    return _library().list_models()


class OpenClipEncoder(TorchEncoder):
    """`weights` is a pretrained tag, a checkpoint file, or a folder with open_clip_config.json beside its weights."""

    text = True
    library = "open_clip"

    def __init__(self, model: str, weights: str | Path, device: str = "cpu"):
        library, name = _library(), model
        if isinstance(weights, Path) and weights.is_dir():
            model, tag = f"local-dir:{weights}", None
        elif weights:
            tag = str(weights)
        else:
            tags = ", ".join(library.list_pretrained_tags_by_model(model)) or "none"
            raise KshotError(f"{model} needs weights: --backbone {model}/TAG (known: {tags}) or --weights FILE.")
        # The tokenizer comes first: what it lacks is known before gigabytes of weights are fetched.
        self.tokenizer = _tokenizer(library, model)
        network = _create(library, model, tag)
        preprocessing = _preprocessing(library.get_model_preprocess_cfg(network))
        self.logit_scale = float(network.logit_scale.detach().exp())
        self.logit_bias = None if network.logit_bias is None else float(network.logit_bias.detach())
        super().__init__(network, preprocessing, device, name, _activation(network))
        self.dim = int(self.encode_prompts(["a"]).unit.shape[1])

    def tower(self, batch: Any) -> Any:
        return self.model.encode_image(batch)

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        import torch

        with torch.inference_mode():
            found = self.model.encode_text(self.tokenizer(list(prompts)).to(self.device))
        return unit_and_norms(found.float().cpu().numpy())


def _tokenizer(library: Any, model: str) -> Any:
    """open_clip's own, or for SigLIP one of transformers, from the folder of the weights or from the hub."""
    local = model.startswith("local-dir:")
    beside = "Put tokenizer.json and tokenizer_config.json beside the weights."
    with _loading(f"the tokenizer of {model}", beside if local else ONLINE_ONCE, from_hub=not local):
        return library.get_tokenizer(model)


def _create(library: Any, model: str, tag: str | None) -> Any:
    """The model in float32. open_clip only warns when weights were trained with another activation; we stop."""
    from_hub = tag is not None and not Path(tag).exists()
    with _loading(f"{model} with weights '{tag}'", ONLINE_ONCE, from_hub), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="QuickGELU mismatch")
        try:
            return library.create_model(model, pretrained=tag, require_pretrained=True, precision="fp32")
        except UserWarning as mismatch:
            raise KshotError(
                f"{model} has another activation than the weights '{tag}' were trained with ({mismatch}). "
                f"Use {model.removesuffix('-quickgelu')}{'' if model.endswith('-quickgelu') else '-quickgelu'}."
            ) from None


@contextmanager
def _loading(what: str, advice: str, from_hub: bool) -> Iterator[None]:
    """Turn every failure into one sentence; what the libraries log beside it is dropped."""
    from huggingface_hub import constants

    offline, before = offline_reason() if from_hub else None, constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or offline is not None
    logging.disable(logging.CRITICAL)
    try:
        yield
    except KshotError:
        raise
    except ModuleNotFoundError as error:
        raise missing_extra(str(error.name).partition(".")[0], "encode") from None
    except Exception as error:  # a checkpoint can be broken in as many ways as there are libraries that read it
        reason = f"{offline}, and it is not in the hub's cache" if offline else first_line(error)
        raise KshotError(f"cannot load {what}: {reason}. {advice}") from None
    finally:
        logging.disable(logging.NOTSET)
        constants.HF_HUB_OFFLINE = before


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
