"""11 points: columns by a strided view, the product by einsum."""

import numpy as np


def conv_as_matmul(image, weights, stride):
    windows = np.lib.stride_tricks.sliding_window_view(image, weights.shape[2:], axis=(1, 2))[
        :, ::stride, ::stride
    ]
    columns = np.ascontiguousarray(windows.transpose(0, 3, 4, 1, 2)).reshape(weights[0].size, -1)
    out = np.einsum("ok,kp->op", weights.reshape(len(weights), -1), columns)
    return columns, out.reshape(len(weights), *windows.shape[1:3])
