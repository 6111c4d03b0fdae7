"""Messages as files: one JSON document plus one .npy file per array; never pickle, never object arrays, sizes capped."""

import json
import math
import os
from pathlib import Path

import numpy as np

MAX_JSON_BYTES = 4 * 2**20
MAX_ARRAY_BYTES = 256 * 2**20
MAX_ARRAYS = 64
ARRAY = "__array__"


class BadMessage(ValueError):
    """A message that is too large, malformed, or not plain data."""


def write(path, value):
    """Write JSON-able data with arrays inside; the JSON file appears last and at once, so a message is whole or absent."""
    path = Path(path)
    arrays = []
    text = json.dumps(_pack(value, path, arrays), allow_nan=False)
    for file, array in arrays:
        np.save(file, array, allow_pickle=False)
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def read(path):
    """Read a message back. Raises BadMessage; follows no links and no names that lead out of the message's folder."""
    path = Path(path)
    try:
        text = _read_regular(path, MAX_JSON_BYTES).decode("utf-8")
        document = json.loads(text, parse_constant=_refuse_constant)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as problem:
        raise BadMessage(f"{path.name}: {type(problem).__name__}") from None
    return _unpack(document, path)


def _pack(value, path, arrays):
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise BadMessage("object arrays do not cross")
        name = f"{path.stem}.{len(arrays)}.npy"
        arrays.append((path.with_name(name), np.ascontiguousarray(value) if value.ndim else value))
        return {ARRAY: name}
    if isinstance(value, dict):
        return {str(key): _pack(inner, path, arrays) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(inner, path, arrays) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": repr(float(value))}
    if isinstance(value, np.generic):
        return _pack(value.item(), path, arrays)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise BadMessage(f"a {type(value).__name__} does not cross")


def _unpack(value, path):
    if isinstance(value, dict):
        if set(value) == {ARRAY}:
            return _load(value[ARRAY], path)
        if set(value) == {"__float__"} and value["__float__"] in ("nan", "inf", "-inf"):
            return float(value["__float__"])
        return {key: _unpack(inner, path) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unpack(inner, path) for inner in value]
    return value


def _load(name, path):
    prefix, _, rest = str(name).rpartition(f"{path.stem}.")
    if prefix or not rest.removesuffix(".npy").isdigit() or int(rest.removesuffix(".npy")) >= MAX_ARRAYS:
        raise BadMessage(f"{path.name}: bad array name")
    file = path.with_name(str(name))
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > MAX_ARRAY_BYTES:
            raise BadMessage(f"{file.name}: missing, a link, or over {MAX_ARRAY_BYTES // 2**20} MiB")
        with open(file, "rb") as handle:
            return np.lib.format.read_array(handle, allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise BadMessage(f"{file.name}: {type(problem).__name__}") from None


def _read_regular(path, limit):
    if path.is_symlink() or not path.is_file():
        raise BadMessage(f"{path.name}: missing or not a file")
    if path.stat().st_size > limit:
        raise BadMessage(f"{path.name}: over {limit // 2**20} MiB")
    return path.read_bytes()


def _refuse_constant(name):
    raise BadMessage(f"{name} is not JSON")
