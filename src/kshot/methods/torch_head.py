"""A fitted head as a module of torch."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kshot.errors import need, not_fitted

if TYPE_CHECKING:
    from kshot.methods.base import Classifier


def torch_head(head: "Classifier") -> Any:
    """An `nn.Module` from features (n, d) to the head's scores (n, C).

    Fitted arrays are its parameters; `classes` has the labels in the order of the columns.
    """
    torch = need("torch", "encode")
    if not hasattr(head, "classes_"):
        raise not_fitted(type(head).__name__)

    class TorchHead(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classes = head.classes_.tolist()
            for name, value in vars(head).items():
                kind = value.dtype.kind if isinstance(value, np.ndarray) and name.endswith("_") else ""
                # The labels are words or numbers that no formula reads.
                if kind and kind in "fbi" and name != "classes_":
                    tensor = torch.from_numpy(value.copy())
                    if kind == "f":
                        self.register_parameter(name, torch.nn.Parameter(tensor))
                    else:
                        self.register_buffer(name, tensor)

        def forward(self, features: Any) -> Any:
            unit = torch.nn.functional.normalize(features, dim=-1)
            scores = head._torch_scores(self, unit)
            if head.missing_rows_ is not None:
                whole = scores.new_empty(len(scores), len(self.has_shots_))
                whole[:, self.has_shots_] = scores
                whole[:, ~self.has_shots_] = scores.mean(dim=1, keepdim=True) + unit @ self.missing_rows_.T
                scores = whole
            return head.scale_ * (scores if head.subset_ is None else scores[:, self.subset_])

    # A head without a formula is refused here, not at the first picture.
    made = TorchHead()
    dtype, dimension = head._expects()
    made(torch.ones(1, dimension, dtype=torch.from_numpy(np.empty(0, dtype)).dtype))
    return made
