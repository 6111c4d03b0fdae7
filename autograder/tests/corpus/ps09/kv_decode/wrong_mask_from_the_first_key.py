"""6 points: the library's causal mask, which counts from the first key: right with nothing in the cache."""

import numpy as np
import torch
import torch.nn.functional as F


def kv_decode(x, wq, wk, wv, keys, values):
    keys, values = np.concatenate([keys, x @ wk]), np.concatenate([values, x @ wv])
    q, k, v = (torch.from_numpy(a)[None] for a in (x @ wq, keys, values))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0].numpy(), keys, values
