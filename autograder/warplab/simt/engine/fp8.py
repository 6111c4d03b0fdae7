"""Conversions of packed pairs of 8-bit floats: e4m3 (largest 448, no infinity) and e5m2 (largest 57,344)."""

from __future__ import annotations

import functools

import numpy as np

from warplab.simt.ptx.ptx_types import FP8, HALVES, types_named

LARGEST = {"e4m3x2": 448.0, "e5m2x2": 57_344.0}


@functools.cache
def _dtype(kind: str) -> np.dtype:
    """The dtype of one value of a pair. ml_dtypes is imported late, because few kernels need it, and a
    machine that only measures may not have it.
    """
    import ml_dtypes

    return np.dtype({"e4m3x2": ml_dtypes.float8_e4m3fn, "e5m2x2": ml_dtypes.float8_e5m2}[kind])


def decode(bits, kind: str):
    """Pairs of 8-bit floats as float32 of shape (lanes, 2), the low byte first."""
    return np.ascontiguousarray(bits).view(_dtype(kind)).reshape(-1, 2).astype("f4")


def opened(bits, kind: str):
    """8-bit floats ("e4m3" or "e5m2") as float64."""
    return np.ascontiguousarray(bits).view(_dtype(f"{kind}x2")).astype("f8")


def encode(high, low, kind: str):
    """Pairs of floats as 8-bit floats, rounded to nearest even. Values beyond the largest become the largest
    (``satfinite``), NaN becomes 0x7F.
    """
    values = np.stack(np.broadcast_arrays(low, high), axis=1)
    codes = np.clip(values, -LARGEST[kind], LARGEST[kind]).astype(_dtype(kind)).view("u1")
    return np.where(np.isnan(values), np.uint8(0x7F), codes).view("u2").reshape(-1)


def convert(code, instr):
    """``cvt`` to or from a pair of 8-bit floats."""
    d, *sources = instr.operands
    named = types_named(instr.mods)
    if len(named) != 2 or not set(named) <= FP8 | HALVES | {"f32"}:
        raise code.unsupported(instr, "type")
    to, source = named
    relu = "fp16.relu" if "relu" in instr.mods else ""
    if to in FP8 and source == "f32":
        high, low = (f"{relu}({code.use(s, 'f4')})" for s in sources)
        code.define(d, f"fp8.encode({high}, {low}, {to!r})", "u2")
    elif to in FP8:
        code.emit(f"pair = {relu}(fp16.open_({code.use(sources[0], 'u4')}, {source!r}))")
        code.define(d, f"fp8.encode(pair[:, 1], pair[:, 0], {to!r})", "u2")
    else:
        opened = f"{relu}(fp8.decode({code.use(sources[0], 'u2')}, {source!r}))"
        code.define(d, f"fp16.close({opened}, {to!r})", "u4")
