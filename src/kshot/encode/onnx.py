"""A picture encoder, and a head behind it, as one ONNX file that runs where neither kshot nor torch is installed.

torch exports the network; what comes before it is written here in ONNX's own text form. Its Resize with antialias=1
filters bytes as Pillow does, up to single grey levels.
"""

import io
import warnings
from collections.abc import Mapping
from typing import Any

from kshot.encode.preprocess import Preprocessing
from kshot.encode.protocol import Encoder
from kshot.errors import InputError, need

OPSET, IR_VERSION = 18, 8
SCALED, FEATURES, PROBABILITIES = "scaled", "features", "probabilities"
MODES = {"bicubic": 'mode = "cubic", cubic_coeff_a = -0.5', "bilinear": 'mode = "linear"'}
# The size to scale to, from the picture's `size` (height, width).
TARGETS = {
    "squash": "target = Constant <value = int64[2] {{{pixels}, {pixels}}}> ()",
    "shortest": """shorter = ReduceMin <keepdims = 1> (size)
  wanted = Constant <value = int64[1] {{{resize_to}}}> ()
  longer = Mul (size, wanted)
  target = Div (longer, shorter)""",
}
# Round goes to the even neighbour here and in Python.
SCALE = """<ir_version: {ir}, opset_import: ["" : {opset}]>
scale (uint8[height, width, 3] picture) => (float[1, 3, {pixels}, {pixels}] scaled) {{
  size = Shape <start = 0, end = 2> (picture)
  {target}
  channels = Transpose <perm = [2, 0, 1]> (picture)
  first = Constant <value = int64[1] {{0}}> ()
  batch = Unsqueeze (channels, first)
  lead = Constant <value = int64[2] {{1, 3}}> ()
  sizes = Concat <axis = 0> (lead, target)
  resized = Resize <{mode}, antialias = 1, exclude_outside = 1> (batch, , , sizes)
  side = Constant <value = int64[1] {{{pixels}}}> ()
  beyond = Sub (target, side)
  beyond_float = Cast <to = 1> (beyond)
  two = Constant <value = float[1] {{2.0}}> ()
  half = Div (beyond_float, two)
  half_whole = Round (half)
  start = Cast <to = 7> (half_whole)
  end = Add (start, side)
  axes = Constant <value = int64[2] {{2, 3}}> ()
  cut = Slice (resized, start, end, axes)
  cut_float = Cast <to = 1> (cut)
  most = Constant <value = float[1] {{255.0}}> ()
  shares = Div (cut_float, most)
  mean = Constant <value = float[1, 3, 1, 1] {{{mean}}}> ()
  std = Constant <value = float[1, 3, 1, 1] {{{std}}}> ()
  centred = Sub (shares, mean)
  scaled = Div (centred, std)
}}"""


def scaling_graph(wanted: Preprocessing) -> Any:
    """What `Preprocessing.__call__` does: `picture`, bytes (height, width, 3), to `scaled`, (1, 3, pixels, pixels)."""
    numbers = {"pixels": wanted.pixels, "resize_to": wanted.resize_to or wanted.pixels}
    mean, std = (", ".join(f"{value:.9f}" for value in values) for values in (wanted.mean, wanted.std))
    text = SCALE.format(
        ir=IR_VERSION,
        opset=OPSET,
        target=TARGETS[wanted.resize].format(**numbers),
        mode=MODES[wanted.interpolation],
        mean=mean,
        std=std,
        **numbers,
    )
    return need("onnx", "serve").parser.parse_model(text)


def onnx_model(head: Any, dim: int, encoder: Encoder | None, about: Mapping[str, str]) -> Any:
    """The head, a torch module from features (n, dim) to logits, with a softmax and, if it is given, the encoder.

    The input is `picture`, bytes (height, width, 3) of any size, or without an encoder `features`; `about` becomes the
    file's metadata.
    """
    onnx = need("onnx", "serve")
    import torch

    tower = _tower(encoder) if encoder is not None else torch.nn.Identity()
    module = torch.nn.Sequential(tower, head, torch.nn.Softmax(dim=1))
    if encoder is None:
        model = onnx.load_from_string(_exported(module, torch.ones(2, dim), FEATURES, {0: "n"}))
    else:
        pixels = encoder.preprocessing.pixels
        network = onnx.load_from_string(_exported(module, torch.zeros(1, 3, pixels, pixels), SCALED, {}))
        network.ir_version = IR_VERSION
        model = onnx.compose.merge_models(scaling_graph(encoder.preprocessing), network, [(SCALED, SCALED)])
    onnx.helper.set_model_props(model, dict(about))
    return model


def _tower(encoder: Encoder) -> Any:
    tower = getattr(encoder, "tower", None)
    if tower is None:
        raise InputError(
            f"the encoder {encoder.facts().get('name')} cannot be put into a graph. Export the head alone: --head-only."
        )
    import torch

    module = torch.nn.Module()
    module.model = encoder.model  # pyright: ignore[reportAttributeAccessIssue]
    module.forward = tower
    return module


def _exported(module: Any, example: Any, name: str, free: Mapping[int, str]) -> bytes:
    """The bytes of the module as torch exports it, from an input called `name` whose `free` axes have any size."""
    import torch

    content = io.BytesIO()
    fused = torch.backends.mha.get_fastpath_enabled()
    # Attention in one fused operator is not in the standard.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            # This exporter needs no further package; it warns of its successor and of every branch on a shape.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module.eval().cpu(),
                (example,),
                content,  # pyright: ignore[reportArgumentType]
                input_names=[name],
                output_names=[PROBABILITIES],
                dynamic_axes={name: free, PROBABILITIES: free},
                opset_version=OPSET,
                dynamo=False,
            )
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
    return content.getvalue()
