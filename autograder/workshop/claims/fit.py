"""Claims about what fits in memory and about number formats."""

import numpy as np

from warplab.hardware import specs
from warplab.models import vram
from workshop.claims.decision import Decision

MIXED_ADAM, FP32_ADAM = vram.RECIPES["mixed, Adam"], vram.RECIPES["FP32, Adam"]  # bytes a parameter


def weights_fp32() -> Decision:
    size = 7e9 * np.dtype(np.float32).itemsize / 1e9
    return Decision({"7 B": size == 28}, {"size": size})


def weights_fp16() -> Decision:
    size = 7e9 * np.dtype(np.float16).itemsize / 1e9
    return Decision({"7 B": size == 14}, {"size": size})


def adam_doubles() -> Decision:
    """Bytes a parameter without m and v and with them, in FP32 throughout and in mixed precision."""
    plain, with_adam = 2 * 4, sum(FP32_ADAM.values())
    halves, mixed = 2 * 2, sum(MIXED_ADAM.values())
    return Decision(
        {"FP32": with_adam == 2 * plain, "mixed": mixed == 2 * halves},
        {"plain": plain, "with_adam": with_adam, "halves": halves, "mixed": mixed, "times": mixed / halves},
    )


def fp32_bits() -> Decision:
    bits = 8 * np.dtype(np.float32).itemsize
    return Decision({"four bits": bits == 4}, {"bits": bits})


def _after_a_step():
    """A layer with gradients and its Adam optimiser after one step."""
    import torch

    layer = torch.nn.Linear(8, 8, bias=False)
    adam = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 8)).sum().backward()
    adam.step()
    return layer, adam


def adam_state() -> Decision:
    """Numbers that PyTorch's Adam keeps for each weight."""
    layer, adam = _after_a_step()
    kept = sum(
        t.numel()
        for t in adam.state[layer.weight].values()
        if getattr(t, "shape", None) == layer.weight.shape
    )
    copies = kept / layer.weight.numel()
    return Decision({"copies": copies == 2}, {"copies": int(copies), "size": 7 * 4 * copies})


def gradient_copy() -> Decision:
    layer, _ = _after_a_step()
    gradient = layer.weight.grad
    assert gradient is not None
    return Decision({"as many gradients as weights": gradient.numel() == layer.weight.numel()})


def activations() -> Decision:
    """GPT-2 small in 16 bits, one sequence, with stored attention and dropout."""
    weights = 124e6 * 2
    size = {s: vram.activation_bytes(12, 768, 12, s, fused=False, dropout=True) for s in (128, 1024)}
    return Decision(
        {f"{s} tokens": v > weights for s, v in size.items()},
        {"weights": weights / 1e6, "short": size[128] / 1e6, "long": size[1024] / 1e6},
    )


def checkpointing() -> Decision:
    """N equal layers in k segments keep k + N/k activations; the extra forward pass adds 1 to 1 + 2."""
    n = 64
    kept = {k: k + n // k for k in range(1, n + 1) if n % k == 0}
    best = min(kept, key=lambda k: kept[k])
    extra = 1 / (1 + 2)
    return Decision(
        {"memory": best**2 == n, "compute": round(100 * extra) == 33},
        {"kept": kept[best], "n": n, "extra": 100 * extra},
    )


def accumulation() -> Decision:
    """The gradient of a mean loss over 64 rows against averaged gradients of parts: 32 + 32, and 48 + 16."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((64, 4)), rng.standard_normal(64)

    def gradient(rows):
        return 2 * x[rows].T @ (x[rows] @ np.ones(4) - y[rows]) / len(x[rows])

    def same(*parts):
        return bool(np.allclose(np.mean([gradient(p) for p in parts], axis=0), gradient(slice(None))))

    return Decision(
        {"equal parts": same(slice(0, 32), slice(32, 64)), "unequal parts": same(slice(0, 48), slice(48, 64))}
    )


def pooling() -> Decision:
    """Fragmentation in chapter 6's example: which requests still fit after three of five blocks are freed."""
    gaps, fits, fails = (6, 6, 6), 6, 8
    image = np.zeros((1, 64, 56, 56), np.float32)
    pooled = image.reshape(1, 64, 28, 2, 28, 2).max((3, 5))
    return Decision(
        {f"a request of {size}": any(gap >= size for gap in gaps) for size in (fits, fails)},
        {"free": sum(gaps), "fits": fits, "fails": fails, "factor": image.nbytes // pooled.nbytes},
    )


def fits_13b() -> Decision:
    card = specs.get("rtx-4090")["memory_capacity"].si
    return Decision(
        {"FP16 weights": 13e9 * 2 <= card}, {"need": 26, "int8": 13, "int4": 6.5, "card": card / 1e9}
    )


def mixed_halves() -> Decision:
    mixed, full = sum(MIXED_ADAM.values()), sum(FP32_ADAM.values())
    readings = {"activations": 2 * 2 == 4, "bytes a parameter": 2 * mixed == full}
    return Decision(readings, {"mixed": mixed, "full": full})


def weights_suffice() -> Decision:
    need = sum(FP32_ADAM.values())
    return Decision(
        {"FP32 training": need <= 4, "mixed precision": sum(MIXED_ADAM.values()) <= 2},
        {"need": need, "training": 7 * need},
    )


def half_the_memory() -> Decision:
    readings = {
        "weights": 2 * 2 == 4,
        "training state": 2 * sum(MIXED_ADAM.values()) == sum(FP32_ADAM.values()),
    }
    return Decision(readings, {"state": sum(MIXED_ADAM.values())})


def memory_first() -> Decision:
    """Does capacity decide between cards? 70 B weights in 16 bits on an H100, 7 B on an RTX 4090."""
    h100, rtx = (specs.get(name)["memory_capacity"].si for name in ("h100-sxm", "rtx-4090"))
    return Decision(
        {"70 B does not fit one H100": 140e9 > h100, "7 B does not fit an RTX 4090": 14e9 > rtx},
        {"need": 140, "small": 14},
    )


def master_weights() -> Decision:
    """A gradient of 1e-4 kept in FP16, and a thousand such updates added to an FP16 weight of 1."""
    gradient, weight, master = np.float16(1e-4), np.float16(1), np.float32(1)
    for _ in range(1000):
        weight, master = np.float16(weight - gradient), master - np.float32(gradient)
    return Decision(
        {"an FP16 weight loses the updates": weight == 1 > master, "FP16 loses the gradient": gradient == 0},
        {"weight": float(weight), "master": float(master)},
    )


def int8_weights() -> Decision:
    """The relative error of INT8 weights with a scale for each row, and with one for all, if one row is 100
    times larger.
    """
    weights = np.random.default_rng(0).standard_normal((64, 256))
    weights[0] *= 100

    def error(top):
        scale = top / 127
        back = np.round(weights / scale) * scale
        return float(np.sqrt(np.mean((back - weights)[1:] ** 2) / np.mean(weights[1:] ** 2)))

    rows, one = error(np.abs(weights).max(1, keepdims=True)), error(np.abs(weights).max())
    return Decision(
        {"a scale for each row": rows < 0.02, "one scale": one < 0.02}, {"rows": 100 * rows, "one": 100 * one}
    )
