"""Two small networks and the data they learn from: what the chapters and experiments on
models run, with nothing to download.

rows = worksheet(1000, seed=0)                  # int64 [1000, 12]: the tokens of "307+58=365" and the like
model = Transformer()
logits = model(rows[:, :-1])                    # float32 [1000, 11, 13]
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

ALPHABET = "0123456789+= "
LENGTH = 12  # of a sum: "999+999=1998" fills it, shorter ones end in spaces
VOCABULARY = len(ALPHABET)


def worksheet(count, seed=0, below=1000):
    """`count` sums of two numbers below `below`, at most 1,000, as tokens, int64
    [count, 12]; the same seed gives the same sums.
    """
    pairs = np.random.default_rng(seed).integers(0, below, (count, 2))
    return torch.tensor([[ALPHABET.index(c) for c in f"{a}+{b}={a + b}".ljust(LENGTH)] for a, b in pairs])


def read(tokens):
    """A row of tokens as text."""
    return "".join(ALPHABET[int(t)] for t in tokens)


def pictures(count, seed=0, size=16):
    """`count` noisy pictures of one of four stripe patterns: (float32 [count, 1, size,
    size], int64 labels [count]).
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, count)
    row, col = np.mgrid[:size, :size]
    waves = np.stack([row, col, row + col, row - col])[labels] + rng.integers(0, 4, count)[:, None, None]
    image = (waves // 2 % 2) + rng.normal(0, 0.5, waves.shape)
    return torch.tensor(image[:, None], dtype=torch.float32), torch.tensor(labels)


class Attention(nn.Module):
    """Causal self-attention. `past`: (keys, values) of earlier tokens, each [batch,
    heads, tokens, width / heads].
    """

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, past=None):
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        if past is None:  # without a mask of our own, which would rule FlashAttention out on CUDA
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            earlier = k.shape[2] - tokens
            seen = torch.ones(tokens, k.shape[2], dtype=torch.bool, device=x.device).tril(earlier)
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width)), (k, v)


class Block(nn.Module):
    """One transformer layer: attention, then two products with four times the width
    between them, each around a shortcut.
    """

    def __init__(self, width, heads):
        super().__init__()
        self.norm_1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm_2, self.mlp = (
            nn.LayerNorm(width),
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
        )

    def forward(self, x, past=None):
        mixed, past = self.attention(self.norm_1(x), past)
        x = x + mixed
        return x + self.mlp(self.norm_2(x)), past


class Transformer(nn.Module):
    """A decoder in the manner of GPT-2: learned positions, pre-norm blocks, an untied output layer."""

    def __init__(self, vocabulary=VOCABULARY, width=64, heads=4, layers=2, context=LENGTH):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, cache=None):
        """int64 [batch, tokens] -> logits float [batch, tokens, vocabulary].

        cache: a list, empty at first, that this call fills with one (keys, values) a
        layer and that the next call continues.
        """
        earlier = cache[0][0].shape[2] if cache else 0
        x = self.token(tokens) + self.position(
            torch.arange(earlier, earlier + tokens.shape[1], device=tokens.device)
        )
        for number, block in enumerate(self.blocks):
            x, past = block(x, cache[number] if cache and earlier else None)
            if cache is not None:
                cache[number : number + 1] = [past]
        return self.head(self.norm(x))

    def loss(self, rows):
        """Mean cross-entropy of every next token of `rows`, int64 [batch, tokens + 1]."""
        return functional.cross_entropy(self(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


class ConvNet(nn.Module):
    """Two convolutions and a linear layer: float32 [batch, 1, 16, 16] -> logits [batch, 4]."""

    def __init__(self, channels=16, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(2 * channels * 16, classes)

    def forward(self, images):
        return self.head(self.features(images).flatten(1))
