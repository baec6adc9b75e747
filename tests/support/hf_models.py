"""Tiny models of transformers with random weights, saved as their authors would save them."""

from pathlib import Path

WORDS = ["<pad>", "<bos>", "<eos>", "<unk>", "a", "photo", "of", "red", "green", "blue", "cat", "dog", "the", "on"]
LENGTH = 12


def _tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing("<bos> $A <eos>", special_tokens=[("<bos>", 1), ("<eos>", 2)])
    special = {"pad_token": "<pad>", "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=LENGTH, **special)


def save_model(kind: str, folder: Path, seed: int = 0) -> Path:
    """Save a clip, siglip or siglip2 with its processor; 24 dimensions, 32 pixels or at most 256 patches."""
    import torch

    from kshot.encode.protocol import import_torchvision

    import_torchvision()
    import transformers

    side = {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = side | {"vocab_size": len(WORDS), "max_position_embeddings": LENGTH, "pad_token_id": 0}
    text |= {"bos_token_id": 1, "eos_token_id": 2, "projection_size": 24}
    if kind == "clip":
        vision = side | {"image_size": 32, "patch_size": 8}
        config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
        model, processor = transformers.CLIPModel, transformers.CLIPProcessor
        sizes = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
        pictures = transformers.CLIPImageProcessor(**sizes)
    elif kind == "siglip":
        config = transformers.SiglipConfig(text_config=text, vision_config=side | {"image_size": 32, "patch_size": 8})
        model, processor = transformers.SiglipModel, transformers.SiglipProcessor
        pictures = transformers.SiglipImageProcessor(size={"height": 32, "width": 32})
    else:
        config = transformers.Siglip2Config(
            text_config=text, vision_config=side | {"num_patches": 16, "patch_size": 16}
        )
        model, processor = transformers.Siglip2Model, transformers.Siglip2Processor
        pictures = transformers.Siglip2ImageProcessor(patch_size=16, max_num_patches=256)
    torch.manual_seed(seed)
    made = model(config)
    made.save_pretrained(folder)
    processor(pictures, _tokenizer()).save_pretrained(folder)
    return folder
