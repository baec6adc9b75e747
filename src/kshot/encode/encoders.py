"""Encoders by the names of the catalog, or by any name that open_clip knows."""

from collections.abc import Sequence
from pathlib import Path

from kshot.data.catalog import backbones
from kshot.encode.protocol import Encoder, pick_device
from kshot.errors import InputError, KshotError, need, unknown


def load_encoder(name: str, weights: Path | None = None, device: str = "auto") -> Encoder:
    """Load a backbone of the catalog, or MODEL/WEIGHTS of open_clip; `weights` is a local checkpoint."""
    if weights is not None and not weights.exists():
        raise KshotError(f"there is no checkpoint at {weights}.")
    need("torch", "encode")
    where = pick_device(device)
    from kshot.encode import lite, vision

    if name in lite.VARIANTS:
        if weights is not None:
            raise KshotError(f"{name} brings its own weights; leave --weights out.")
        return lite.LiteEncoder(name, where)
    if name in vision.VARIANTS:
        return vision.VisionEncoder(name, weights, where)
    from kshot.encode.openclip import OpenClipEncoder, known_models

    entry = backbones().get(name)
    model, _, tag = name.partition("/")
    if entry is not None and entry.open_clip is not None:
        model, tag = entry.open_clip
    if model not in known_models():
        raise KshotError(
            unknown("backbone", name, [*backbones(), *known_models()], "List them with `kshot ls backbones`.")
        )
    return OpenClipEncoder(model, weights or tag, where)


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
    return found


def stored_name(name: str) -> str:
    """The backbone's name in the store, where a slash would be a folder."""
    return name.replace("/", "+")
