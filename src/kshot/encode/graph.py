"""A picture encoder as ONNX: from the pixels of a decoded picture to features that are not yet of unit length."""

import io
import warnings
from typing import Any, NamedTuple

from kshot.encode.pillow_graph import GraphBuilder, scale_picture
from kshot.encode.protocol import Encoder
from kshot.errors import InputError, need

OPSET = 18
PICTURE, SCALED, FEATURES = "picture", "scaled", "features"


class GraphParts(NamedTuple):
    """Nodes in their order, and the constants that they read."""

    nodes: list[Any]
    constants: list[Any]


def encoder_parts(encoder: Encoder) -> GraphParts:
    """`picture`, bytes (height, width, 3) of any size, to `features` (1, d)."""
    scaling, tower = GraphBuilder("scaling."), _tower_parts(encoder)
    scale_picture(scaling, PICTURE, encoder.preprocessing, SCALED)
    return GraphParts([*scaling.nodes, *tower.nodes], [*scaling.constants, *tower.constants])


def _tower_parts(encoder: Encoder) -> GraphParts:
    """The network as torch's exporter writes it: `scaled` to `features`."""
    onnx = need("onnx", "serve")
    tower = getattr(encoder, "tower", None)
    if tower is None:
        raise InputError(
            f"the encoder {encoder.facts().get('name')} cannot be put into a graph. Export the head alone: --head-only."
        )
    import torch

    module = torch.nn.Module()
    module.model = encoder.model  # pyright: ignore[reportAttributeAccessIssue]
    module.forward = tower
    pixels = encoder.preprocessing.pixels
    batch = torch.zeros(1, 3, pixels, pixels, device=next(module.parameters()).device)
    content = io.BytesIO()
    fused = torch.backends.mha.get_fastpath_enabled()
    # Attention in one fused operator is not in the standard.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            # The exporter that needs no further package tells of its successor, and of every branch on a shape.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module.eval(),
                (batch,),
                content,  # pyright: ignore[reportArgumentType]
                input_names=[SCALED],
                output_names=[FEATURES],
                opset_version=OPSET,
                dynamo=False,
            )
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
    graph = onnx.load_from_string(content.getvalue()).graph
    return GraphParts(list(graph.node), list(graph.initializer))
