"""Arrays as torch keeps them."""

import numpy as np
import torch


def save_torch(path, X):
    torch.save(torch.from_numpy(np.ascontiguousarray(X)), path)


def save_all(folder, **arrays):
    """FOLDER/NAME.pt for each."""
    folder.mkdir(exist_ok=True)
    for name, X in arrays.items():
        save_torch(folder / f"{name}.pt", X)
