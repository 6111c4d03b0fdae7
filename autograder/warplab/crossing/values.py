"""Plain data between processes: copies of inputs, validated results, and buffers filled with poison."""

import json
from typing import Any

import msgspec
import numpy as np

from warplab.crossing.arrays import NotPlain, as_array, named
from warplab.crossing.explain import Refused

MAX_RESULT_BYTES = 4 << 20  # of one case; the judge holds the results of all cases at once


class Result(msgspec.Struct):
    """The answer of a task that computes its result itself. modified: names of inputs that it changed."""

    outputs: dict[str, np.ndarray]
    modified: list[str] = []


def validated(data, form, what) -> Any:
    """Validate untrusted plain data with arrays in it, and convert it to `form`. Raises Refused.

    what: the data and its source, for the error. A class in `form` must have a field without a default, or
    msgspec would accept an array as an empty mapping; for a dict it asks an array for keys (AttributeError).
    """
    try:
        return msgspec.convert(data, form)
    except (msgspec.ValidationError, AttributeError) as problem:
        raise Refused(f"{what} is malformed: {problem}") from None


def result_of(answer):
    """An answer as a Result. Raises Refused unless it is one, of at most MAX_RESULT_BYTES."""
    told = validated(answer, Result, "the result from the student's process")
    nbytes = sum(value.nbytes for value in told.outputs.values())
    if nbytes > MAX_RESULT_BYTES:
        limit = f"the limit is {MAX_RESULT_BYTES >> 20} MiB: return only what the task asks for"
        raise Refused(f"the results of this case have {nbytes:,} bytes, {limit}")
    return told


def plain_copy(value):
    """A copy of JSON-able data with arrays in it, as it would arrive in another process.

    Tuples become lists and NumPy scalars Python numbers, so that a submission gets the same values in a
    notebook and when it is graded. Raises TypeError for other types.
    """
    if type(value) is np.ndarray:
        return np.array(value, order="C")
    if isinstance(value, dict):
        return {str(key): plain_copy(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_copy(inner) for inner in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{named(value)} is not plain data; use numbers, strings, lists, dicts and arrays")


def negated(data):
    """Plain data with each floating-point array negated: different inputs of the same shapes and dtypes."""
    if type(data) is dict:
        return {name: negated(value) for name, value in data.items()}
    return -data if type(data) is np.ndarray and data.dtype.kind == "f" else data


def given(task, case, without=()):
    """{argument: plain copy} of the inputs that `task.arguments` names, except those in `without`."""
    return {name: plain_copy(case.inputs[name]) for name in task.arguments if name not in without}


def check_callable(entry, name):
    """Raise Refused unless `entry` can be called."""
    if entry is None or not callable(entry):
        raise Refused(f"`{name}` must be a function, and it is {named(entry)}")


def read_results(returns, value, name):
    """{result: plain array} from what the function `name` returned. Raises Refused.

    returns: {result: kind as in as_array()}, in order.
    """
    several = type(value) in (tuple, list) and len(value) != 1
    if len(returns) == 1:
        values = (value,)
    elif several and len(value) == len(returns):
        values = value
    else:
        got = f"{len(value)} values" if several else "None" if value is None else "one value"
        raise Refused(f"`{name}` returned {got}, expected {len(returns)}: {', '.join(returns)}")
    outputs = {}
    for (result, kind), item in zip(returns.items(), values, strict=True):
        try:
            outputs[result] = as_array(item, kind)
        except NotPlain as problem:
            raise Refused(f"`{result}`: {problem}") from None
    return outputs


def poisoned(shape, dtype):
    """A new array of poison, so that an element which a kernel does not write is wrong.

    Floating-point arrays are filled with a NaN whose last bit is set, which arithmetic never produces, so
    that a computed NaN differs from it; integer arrays with random bytes.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        array = np.full(shape, np.nan, dtype)
        array.view(f"u{dtype.itemsize}")[...] |= 1
        return array
    nbytes = int(np.prod(shape)) * dtype.itemsize
    noise = np.random.default_rng(0xDEAD).integers(0, 256, nbytes, dtype=np.uint8)
    return noise.view(dtype).reshape(shape)


def filled(buffer, copy: bool | None = True):
    """The initial contents of an Order's buffer: the array itself, or poison for an Empty.

    copy: as in np.array; with None, an array in C order is not copied.
    """
    if type(buffer) is np.ndarray:
        return np.array(buffer, order="C", copy=copy)
    return poisoned(buffer.shape, buffer.dtype)


def modified(before, after):
    """The names of inputs that differ. before, after: {name: plain data}."""
    return [name for name in before if not _unchanged(before[name], after[name])]


def _unchanged(before, after):
    if type(before) is np.ndarray:
        same_form = type(after) is np.ndarray and after.shape == before.shape and after.dtype == before.dtype
        return same_form and after.tobytes() == before.tobytes()
    if type(before) not in (list, dict):
        return True  # numbers and strings cannot be changed in place
    try:
        one, other = (json.dumps(value, sort_keys=True, default=_array) for value in (before, after))
        return one == other
    except (TypeError, ValueError):
        return False


def _array(value):
    if type(value) is not np.ndarray:
        raise TypeError
    return [str(value.dtype), list(value.shape), value.tobytes().hex()]
