"""Dual encoders of transformers: CLIP, SigLIP, SigLIP 2, ALIGN, MetaCLIP and others with features of both kinds.

Pictures and sentences go through the model's own processor, so that features are those of the library's own calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from kshot.encode.hub import loading, offline_reason
from kshot.encode.preprocess import AsGiven
from kshot.encode.protocol import PromptFeatures, TorchEncoder, import_torchvision, model_number, unit_and_norms
from kshot.errors import KshotError, need
from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

PREFIX = "hf:"
# Contexts up to this length are filled up, as these models were trained; longer ones have a mask.
MOST_FILLED = 128
# Settings of a processor that do not change its output.
NOT_PIXELS = ("processor_class", "_processor_class", "auto_map", "_valid_processor_keys", "image_processor_type")


def local_folder(name: str) -> Path | None:
    """The folder that hf:./FOLDER names, or None for a model of the hub."""
    path = Path(name.removeprefix(PREFIX)).expanduser()
    return path if path.is_dir() or name.removeprefix(PREFIX).startswith((".", "/", "~")) else None


def load_transformers(name: str, device: str) -> "TransformersEncoder":
    """Load hf:ORG/NAME, hf:ORG/NAME@REVISION or hf:./FOLDER in float32."""
    folder = local_folder(name)
    where, _, revision = name.removeprefix(PREFIX).partition("@") if folder is None else (str(folder), "", "")
    if folder is not None and not (folder / "config.json").is_file():
        raise KshotError(f"{folder} holds no config.json of a transformers model. Save one there: save_pretrained.")
    import_torchvision()  # transformers imports it where it is installed
    need("torch", "hf")
    transformers = need("transformers", "hf")
    transformers.utils.logging.disable_progress_bar()
    advice = "Give hf:ORG/NAME of a CLIP-like model on the hub (once with a connection), or hf:./FOLDER."
    with loading(f"{name} by transformers", advice, "hf", from_hub=folder is None):
        offline = folder is not None or offline_reason() is not None
        source: dict[str, Any] = {"revision": revision or "main", "local_files_only": offline}
        model, about = transformers.AutoModel.from_pretrained(where, output_loading_info=True, **source)
        processor = transformers.AutoProcessor.from_pretrained(where, **source)
    lacking = sorted(map(str, about["missing_keys"]))
    if lacking:
        # transformers would fill them with random numbers.
        raise KshotError(f"the weights of {name} lack {len(lacking)} tensors of its model, first {lacking[0]}.")
    encoder = TransformersEncoder(model.float(), processor, device)
    encoder.backbone = name
    return encoder


class ProcessorPreprocessing(AsGiven):
    """A picture through a processor's picture side: its arrays by name, each with one row."""

    def __init__(self, processor: Any):
        self.processor = processor
        # What reads the pictures: another class may scale them in another way, by torch or by Pillow.
        self.scaler = processor.image_processor

    def __call__(self, picture: "Image") -> dict[str, Array]:
        found = self.processor(images=[picture], return_tensors="pt")
        return {name: value.numpy() for name, value in found.items()}

    def view(self, picture: "Image", box: tuple[int, int, int, int], flip: bool) -> dict[str, Array]:
        """An augmented view, scaled to the input where that is square: nothing of it is cropped again."""
        cut = picture.crop(box)
        height, width = self(cut)["pixel_values"].shape[-2:]
        square = cut.resize((width, height)) if height == width else cut
        return super().view(square, (0, 0, *square.size), flip)

    def facts(self) -> dict[str, Any]:
        """The settings that are numbers, words or lists of them, as JSON gives them back."""
        settings = {name: value for name, value in self.scaler.to_dict().items() if name not in NOT_PIXELS}
        names = {"processor": type(self.processor).__name__, "scaler": type(self.scaler).__name__}
        return names | _plain(settings)


class TransformersEncoder(TorchEncoder):
    """A model of transformers with its processor; without `device` it stays where it is."""

    library = "transformers"

    def __init__(self, model: Any, processor: Any, device: Any = None):
        kind = type(model).__name__
        lacking = [name for name in ("get_image_features", "get_text_features") if not hasattr(model, name)]
        if lacking:
            raise KshotError(f"{kind} has no {' and no '.join(lacking)}. Give a dual encoder such as CLIPModel.")
        for part in ("image_processor", "tokenizer"):
            if getattr(processor, part, None) is None:
                raise KshotError(
                    f"{type(processor).__name__} has no {part}. Give the model's own: AutoProcessor.from_pretrained."
                )
        self.processor = processor
        self.logit_scale, self.logit_bias = _scale(model), model_number(model, "logit_bias")
        self.backbone = f"{PREFIX}{model.name_or_path or kind}"
        device = next(model.parameters()).device if device is None else device
        super().__init__(model, ProcessorPreprocessing(processor), device, kind, _activation(model.config))

    def encode_images(self, inputs: Sequence[Any] | Array) -> Float[Array, "B d"]:
        batch = {name: np.concatenate([one[name] for one in inputs]) for name in inputs[0]}
        return unit_and_norms(self.run(self.model.get_image_features, **batch)).unit

    def encode_prompts(self, prompts: Sequence[str]) -> PromptFeatures:
        config = getattr(self.model.config, "text_config", self.model.config)
        longest = min(getattr(config, "max_position_embeddings", 512), self.processor.tokenizer.model_max_length)
        padding = "max_length" if longest <= MOST_FILLED else True
        tokens = self.processor(
            text=list(prompts), padding=padding, truncation=True, max_length=longest, return_tensors="pt"
        )
        return unit_and_norms(self.run(self.model.get_text_features, **{k: v.numpy() for k, v in tokens.items()}))


def _scale(model: Any) -> float | None:
    """exp(logit_scale), or ALIGN's 1/temperature; None where the model has neither."""
    scale, temperature = model_number(model, "logit_scale"), model_number(model, "temperature")
    return float(np.exp(scale)) if scale is not None else 1 / temperature if temperature else None


def _activation(config: Any) -> str:
    sides = [getattr(config, side, None) for side in ("vision_config", "text_config")]
    return "+".join(sorted({str(found) for side in sides if (found := getattr(side, "hidden_act", None))}))


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without settings that are unset; enumerations by their numbers, tuples as lists."""
    kept = {}
    for name in sorted(settings):
        value = settings[name]
        if isinstance(value, Mapping):
            kept[name] = _plain(value)
        elif isinstance(value, list | tuple):
            kept[name] = list(value)
        elif isinstance(value, str | bool | float | int):
            kept[name] = int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return kept
