"""0 points: asks PyTorch, which rounds twice (through float32), has another NaN and knows four formats only."""

import numpy as np
import torch

THEIRS = {
    (5, 10): (torch.float16, torch.int16),
    (8, 7): (torch.bfloat16, torch.int16),
    (5, 2): (torch.float8_e5m2, torch.uint8),
    (4, 3): (torch.float8_e4m3fn, torch.uint8),
}


def encode_float(x, exponent_bits, fraction_bits, infinities):
    dtype, whole = THEIRS[exponent_bits, fraction_bits]
    codes = torch.from_numpy(x).to(dtype).view(whole).numpy().astype(np.int64)
    return codes % 2 ** (1 + exponent_bits + fraction_bits)
