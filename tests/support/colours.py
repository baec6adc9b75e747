"""A stand-in encoder that knows colours, and pictures for it."""

import io

import numpy as np

from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import Encoder, PromptFeatures

COLOURS = {"red": (1, -1, -1), "green": (-1, 1, -1), "blue": (-1, -1, 1)}


class ColourEncoder(Encoder):
    """A stand-in that knows colours: pictures by their mean colour, prompts by the colour they name."""

    dim = 8
    backbone = "colours"
    logit_scale = 20.0
    logit_bias = None

    def __init__(self, weights: str = "first", pixels: int = 8):
        self.weights = weights
        self.preprocessing = Preprocessing(pixels, (0.5,) * 3, (0.5,) * 3)

    def encode_images(self, batch):
        rows = np.stack(batch).mean(axis=(2, 3))
        return _unit(np.hstack([rows, np.zeros((len(rows), 4)), np.full((len(rows), 1), 0.3)]))

    def encode_prompts(self, prompts):
        rows = np.array([self._named(prompt) for prompt in prompts])
        found = np.hstack([rows, np.full((len(rows), 1), 0.5), np.zeros((len(rows), 4))])
        return PromptFeatures(_unit(found), np.full(len(prompts), 3.0, np.float32))

    def facts(self):
        return {"name": "colours", "weights_sha256": self.weights}

    def _named(self, prompt):
        known = [value for name, value in COLOURS.items() if name in prompt]
        return known[0] if known else (0.1, 0.2, 0.3 + 0.01 * (len(prompt) % 7))


def _unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def shade(path, colour, rng, size=(40, 30), sigma=60, **options):
    """A picture of about one colour."""
    from PIL import Image

    base = np.array([255 if own > 0 else 0 for own in COLOURS[colour]])
    values = np.clip(base + rng.normal(0, sigma, (size[1], size[0], 3)), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, **options)


def write_shades(root, rng, count=4):
    """So many pictures of each colour, ROOT/COLOUR/0.png …"""
    for colour in COLOURS:
        for number in range(count):
            shade(root / colour / f"{number}.png", colour, rng)
    return root


def new_picture(colour, seed):
    """The bytes of one, for a request; of two colours joined by "+" each fills a half."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    halves = [np.array([255 if own > 0 else 0 for own in COLOURS[name]]) for name in colour.split("+")]
    base = np.repeat(np.stack(halves), 40 // len(halves), axis=0)
    values = np.clip(base[None] + rng.normal(0, 60, (30, 40, 3)), 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(values).save(out, "PNG")
    return out.getvalue()
