"""Warp-wide operations (shuffle, vote, match, reduction) on tables with a row of 32 lanes for each warp."""

from __future__ import annotations

from functools import cached_property

import numpy as np

REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


class WarpTable:
    """The lanes of a group as a table: ``present[w, l]`` says whether lane l of warp w is in the group."""

    def __init__(self, group):
        self.row, self.column, self.rows = group.row, group.column, group.warps
        self.present = np.zeros((self.rows, 32), bool)
        self.present[self.row, self.column] = True

    @cached_property
    def places(self) -> np.ndarray:
        """The index of each lane in the group, -1 for an absent lane."""
        places = np.full((self.rows, 32), -1)
        places[self.row, self.column] = np.arange(self.row.size)
        return places

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Per-lane values as a table; absent lanes hold zero."""
        table = np.zeros((self.rows, 32), values.dtype)
        table[self.row, self.column] = values
        return table

    def gather(self, table: np.ndarray) -> np.ndarray:
        return table[self.row, self.column]

    def bits(self, flags: np.ndarray) -> np.ndarray:
        """One uint32 a warp: bit l is set if lane l is present and its flag is true."""
        table = self.spread(np.broadcast_to(flags, self.row.shape)) & self.present
        return (table.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=1).astype(np.uint32)


def shuffle(table: WarpTable, mode: str, value, b, c, mask):
    """``shfl.sync``: (value of the source lane, whether the source was in range, missing sources).

    A lane's result is undefined if its source lane is absent, or if ``mask`` does not name both: all bits are
    then 1, which is NaN for a float. For these lanes ``missing`` is the source's number plus 1, for others 0;
    it is None if all results are defined.
    ``b`` is the lane, the distance or the mask of the ``mode``; ``c`` packs the segment mask and the clamp,
    as in the PTX manual's pseudo-code.
    """
    lane = table.column.astype(np.int64)
    b = np.broadcast_to(b, lane.shape).astype(np.int64) & 31
    c = np.broadcast_to(c, lane.shape).astype(np.int64)
    clamp, segment = c & 31, (c >> 8) & 31
    most = (lane & segment) | (clamp & ~segment)
    source = {
        "up": lambda: lane - b,
        "down": lambda: lane + b,
        "bfly": lambda: lane ^ b,
        "idx": lambda: (lane & segment) | (b & ~segment),
    }[mode]()
    good = source >= most if mode == "up" else source <= most
    source = np.where(good, source, lane)
    at, mask = table.places[table.row, source], np.broadcast_to(mask, lane.shape).astype(np.int64)
    there = at >= 0
    if (mask != 0xFFFFFFFF).any():
        there &= ((mask >> lane) & (mask >> source) & 1).astype(bool)
    got = value[at if value.size > 1 else np.zeros_like(at)]
    if there.all():
        return got, good, None
    undefined = np.array(-1).astype(value.dtype)
    return np.where(there, got, undefined), good, np.where(there, 0, source + 1)


def vote(table: WarpTable, mode: str, flag: np.ndarray, mask: np.ndarray):
    """``vote.sync`` over the lanes in ``mask``: a bool a lane for all, any and uni, a uint32 for ballot."""
    mask = np.broadcast_to(mask, table.row.shape)
    here = table.bits(np.ones(1, bool))[table.row] & mask
    ballot = table.bits(flag)[table.row] & mask
    return {
        "ballot": lambda: ballot,
        "all": lambda: ballot == here,
        "any": lambda: ballot != 0,
        "uni": lambda: (ballot == here) | (ballot == 0),
    }[mode]()


def match_any(table: WarpTable, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """``match.any.sync``: for each lane, the mask of the warp's lanes that have the same value."""
    values = table.spread(np.broadcast_to(value, table.row.shape))
    same = (values[:, :, None] == values[:, None, :]) & table.present[:, None, :]
    bits = (same.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=2).astype(np.uint32)
    return bits[table.row, table.column] & np.broadcast_to(mask, table.row.shape)


def match_all(table: WarpTable, value: np.ndarray, mask: np.ndarray):
    """``match.all.sync``: (the mask if all its lanes have the same value, else 0; whether they do)."""
    members = match_any(table, value, mask)
    here = table.bits(np.ones(1, bool))[table.row] & np.broadcast_to(mask, table.row.shape)
    agree = members == here
    return np.where(agree, members, np.uint32(0)), agree


def reduce_(table: WarpTable, operation: str, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """``redux.sync``: add, min, max, and, or, xor over the warp's lanes that the member mask names.

    If the lanes of a warp give different masks, each mask is a reduction of its own.
    """
    lanes, masks = np.broadcast_to(value, table.row.shape), np.broadcast_to(mask, table.row.shape)
    member = (masks >> table.column.astype(np.uint32)) & np.uint32(1) == 1
    row, rows = table.row, table.rows
    if (masks != masks[0]).any():
        of_warp = table.row.astype(np.uint64) << np.uint64(32) | masks
        different, row = np.unique(of_warp, return_inverse=True)
        rows = different.size
    limits = np.iinfo(lanes.dtype)
    identity = {"and": limits.max if limits.min == 0 else -1, "min": limits.max, "max": limits.min}
    fill = lanes.dtype.type(identity.get(operation, 0))
    values = np.full((rows, 32), fill)
    values[row, table.column] = np.where(member, lanes, fill)
    return REDUCTIONS[operation].reduce(values, axis=1, dtype=lanes.dtype)[row]
