"""3 points: the library gives the result, but no columns."""

import numpy as np
import torch


def conv_as_matmul(image, weights, stride):
    out = torch.nn.functional.conv2d(torch.from_numpy(image)[None], torch.from_numpy(weights), stride=stride)[0]
    _, rows, cols = out.shape
    return np.zeros((weights[0].size, rows * cols), np.float32), out
