"""20 points: in torch, with GradScaler's order of things."""

import numpy as np
import torch


def train_step(master, moment, gradient, scale, good, lr):
    g = torch.from_numpy(gradient).float() / scale
    if not bool(torch.isfinite(g).all()):
        return master, moment, master.astype(np.float16), scale / 2, 0
    m = 0.9 * torch.from_numpy(moment) + g
    new = torch.from_numpy(master) - lr * m
    good += 1
    scale, good = (2 * scale, 0) if good == 4 else (scale, good)
    return new.numpy(), m.numpy(), new.half().numpy(), scale, good
