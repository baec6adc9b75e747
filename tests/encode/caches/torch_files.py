"""Arrays as torch keeps them."""

import numpy as np
import torch


def save_torch(path, X):
    torch.save(torch.from_numpy(np.asarray(X)), path)
