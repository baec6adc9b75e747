"""Write a picture head as an ONNX file, from pictures or from features of its encoder to probabilities."""

import json
from pathlib import Path

from kshot.encode.onnx import onnx_model
from kshot.encode.protocol import Encoder
from kshot.errors import InputError, need
from kshot.files import write_bytes
from kshot.pictures.head import PictureHead

# Limit of one ONNX file.
MOST_BYTES = 2**31 - 1
STORED = ("classes", "encoder", "backbone", "method", "threshold")


def export_onnx(head: PictureHead, path: Path, encoder: Encoder | None = None) -> None:
    """With the encoder: `picture`, bytes (height, width, 3) in RGB → `probabilities` (1, C).

    Without: `features` (n, d) → `probabilities` (n, C). Class names, threshold and encoder are in the metadata. Beside
    `kshot predict` probabilities differ by less than 0.005 on the tested pictures.
    """
    if encoder is not None:
        head.check_encoder(encoder)
    about = {name: json.dumps(getattr(head.about, name), ensure_ascii=False) for name in STORED}
    model = onnx_model(head.to_torch(), head.shots.X.shape[1], encoder, about)
    if model.ByteSize() > MOST_BYTES:
        raise InputError("the graph would exceed 2 GB, the most of one ONNX file. Export the head alone: --head-only.")
    need("onnx", "serve").checker.check_model(model)
    write_bytes(path, model.SerializeToString())
