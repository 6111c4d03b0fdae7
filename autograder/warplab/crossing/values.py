"""Values on their way over the boundary: plain copies of inputs, plain results, outputs that begin wrong."""

import json
from typing import Any

import msgspec
import numpy as np

from warplab.crossing.arrays import NotPlain, as_array, named
from warplab.crossing.explain import Refused

MAX_RESULT_BYTES = 4 << 20  # of one case: the judge keeps those of all cases until it compares


class Result(msgspec.Struct):
    """What comes back of a task whose answer is the result. modified: names of inputs."""

    outputs: dict[str, np.ndarray]
    modified: list[str] = []


def of_form(data, form, what) -> Any:
    """Plain data of a stranger's, with arrays in it, as an instance of `form`. Raises Refused if it is none.

    what: the sentence's beginning. A class in `form` needs a field without a default: msgspec takes an array
    for a mapping that has none of the others, and asks it for its keys where it expects a dict.
    """
    try:
        return msgspec.convert(data, form)
    except (msgspec.ValidationError, AttributeError) as problem:
        raise Refused(f"{what}: {problem}") from None


def result_of(answer):
    """An answer that is the result itself, and small enough. Raises Refused for anything else."""
    told = of_form(answer, Result, "what came back is not a result")
    nbytes = sum(value.nbytes for value in told.outputs.values())
    if nbytes > MAX_RESULT_BYTES:
        raise Refused(
            f"{nbytes:,} bytes came back; the results of one case have at most {MAX_RESULT_BYTES >> 20} MiB"
        )
    return told


def plain_copy(value):
    """A copy of JSON-able data with arrays in it, in the form in which it arrives in another process.

    Tuples become lists and NumPy scalars numbers, so a submission sees the same in a notebook and when it is
    graded.
    Raises TypeError for anything else.
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
    raise TypeError(f"a {type(value).__name__} does not cross; use numbers, texts, lists, dicts and arrays")


def negated(data):
    """Plain data with each array of floating-point numbers negated: other inputs of the same kind."""
    if type(data) is dict:
        return {name: negated(value) for name, value in data.items()}
    return -data if type(data) is np.ndarray and data.dtype.kind == "f" else data


def given(task, case, without=()):
    """{argument: plain copy}: the inputs that `task.arguments` names, and no other."""
    return {name: plain_copy(case.inputs[name]) for name in task.arguments if name not in without}


def check_callable(entry, name):
    """Raise Refused unless `entry` can be called."""
    if entry is None or not callable(entry):
        raise Refused(f"`{name}` must be a function, and it is {named(entry)}")


def read_results(returns, value, name):
    """Split what the function `name` returned into its results, {name: kind} in order, as plain arrays."""
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
    """A new array that is wrong wherever a kernel leaves it alone.

    It is full of a NaN with a last bit that no arithmetic sets, so that a computed NaN is not taken for it,
    or of scrambled bytes for integers.
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
    """What a buffer of an Order begins with: an array, or an Empty's poison.

    copy: as NumPy has it; with None, an array that is in C order may be the order's own.
    """
    if type(buffer) is np.ndarray:
        return np.array(buffer, order="C", copy=copy)
    return poisoned(buffer.shape, buffer.dtype)


def modified(before, after):
    """Names of the inputs that the student's code changed."""
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
