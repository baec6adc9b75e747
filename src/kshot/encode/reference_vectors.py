"""Eight pictures that never change: how a backbone encodes them is kept at first use and compared later.

A changed activation, preprocessing or weights file moves these vectors long before anyone looks at accuracies.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from kshot.encode.protocol import Encoder
from kshot.errors import FeatureError
from kshot.files import write_bytes
from kshot.types import Array

COUNT = 8
# Cosine distance. Other float32 kernels give 1e-13 and reduced precision about 1e-7; another activation or
# interpolation gives 1e-5 on a random network and a hundred times more on a trained one.
TOLERANCE = 2e-6
PROMPTS = ("a photo of a cat.", "a drawing of a bicycle.")


def reference_vectors(encoder: Encoder) -> dict[str, Float[Array, "n d"]]:
    """Unit features of the reference pictures and, where there is a text tower, of two prompts."""
    inputs = [encoder.preprocessing(picture) for picture in _pictures()]
    vectors = {"pictures": encoder.encode_images(inputs).astype(np.float32)}
    if encoder.text:
        vectors["prompts"] = encoder.encode_prompts(PROMPTS).unit.astype(np.float32)
    return vectors


def compare_with_reference(encoder: Encoder, backbone: str, kept: list[Path]) -> None:
    """Compare with the first of these files that exists; without any, write the vectors to the first."""
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    now = reference_vectors(encoder)
    path = next((path for path in kept if path.is_file()), None)
    if path is None:
        write_bytes(kept[0], save(now))
        return
    try:
        before = load(path.read_bytes())
    except SafetensorError as error:
        raise FeatureError(f"{path} is damaged ({error}). Delete it; it is then made anew.") from error
    for name, rows in before.items():
        distance = float("inf")
        if name in now and now[name].shape == rows.shape:
            distance = float(((rows - now[name]).astype(np.float64) ** 2).sum(axis=1).max() / 2)
        if not distance <= TOLERANCE:
            raise FeatureError(
                f"{backbone} does not encode as it did before: reference {name} differ by a cosine distance of "
                f"{distance:.1e} (allowed {TOLERANCE:.0e}). Weights, activation or preprocessing changed. Use the "
                f"earlier ones, or another --features folder; {path} keeps the earlier vectors."
            )


def _pictures() -> list:
    """Smooth colour waves with sharp bars, of several shapes, so that every step of resizing matters."""
    from PIL import Image

    pictures = []
    for number in range(COUNT):
        height, width = 160 + 40 * number, 400 - 30 * number
        y, x = np.mgrid[0:height, 0:width]
        waves = [
            127.5 + 127.5 * np.sin((0.02 + 0.013 * number) * x + (0.05 - 0.007 * number) * y + channel)
            for channel in range(3)
        ]
        values = np.stack(waves, axis=-1)
        values[:, width // 3 : width // 2, number % 3] = 255
        values[height // 2 : height // 2 + 9] = 0
        pictures.append(Image.fromarray(values.round().astype(np.uint8)))
    return pictures
