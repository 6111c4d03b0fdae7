"""Turns whatever a student's code returned into plain NumPy arrays, or says why that is not possible.

No method of the value is called and no `==` used: only exact built-in types are accepted, so that code in an
object's `__eq__`, `__array__` or `__float__` never runs.
"""

import sys

import numpy as np

MAX_ELEMENTS = 20_000_000
MAX_DEPTH = 4

WHOLE = frozenset({int, *(np.dtype(code).type for code in "bhilqBHILQ")})
REAL = frozenset({float, *(np.dtype(code).type for code in "efd")})


class NotPlain(ValueError):
    """The value is not plain data; the message is a sentence for the student."""


def as_array(value, kind):
    """Return `value` as a new C-contiguous array.

    kind: "integers" (int64; whole numbers, or lists, tuples and arrays of them), "numbers" (float64; the same
    with reals), or a dtype name such as "float32" (an ndarray or a tensor of exactly that dtype).
    Raises NotPlain for anything else: None, object arrays, subclasses, ragged lists, booleans where numbers
    belong.
    """
    if value is None:
        raise NotPlain("nothing was returned (None): does the function end in `return`?")
    array = _array_or_none(value)
    if kind == "integers" or kind == "numbers":
        return _numbers(value if array is None else array, kind)
    if array is None:
        raise NotPlain(f"got {named(value)}, expected an array of {kind}: np.array(..., np.{kind}) makes one")
    if array.dtype != np.dtype(kind):
        raise NotPlain(f"dtype is {array.dtype}, expected {kind}: use astype(np.{kind}) or to(torch.{kind})")
    return _copy(array)


def _array_or_none(value):
    """The ndarray of a value whose type is exactly ndarray or torch.Tensor; None for other types."""
    torch = sys.modules.get("torch")
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        value = value.detach().cpu().numpy()
    if type(value) is not np.ndarray:
        return None
    if value.dtype.hasobject or value.dtype.kind not in "biuf":
        raise NotPlain(f"the array has dtype {value.dtype}; only booleans, integers and floats are graded")
    if value.size > MAX_ELEMENTS:
        limit = f"the limit is {MAX_ELEMENTS:,}: return only what the task asks for"
        raise NotPlain(f"the array has {value.size:,} elements, {limit}")
    return value


def _numbers(value, kind):
    whole = kind == "integers"
    dtype, wanted = (np.int64, "whole numbers") if whole else (np.float64, "numbers")
    if type(value) is np.ndarray:
        if value.dtype.kind not in ("iu" if whole else "iuf"):
            raise NotPlain(f"dtype is {value.dtype}, expected {wanted}: use .astype(np.{dtype.__name__})")
        return _copy(value).astype(dtype)
    plain = _walk(value, WHOLE if whole else WHOLE | REAL, kind, MAX_DEPTH, [MAX_ELEMENTS])
    try:
        return np.array(plain, dtype=dtype)
    except OverflowError:
        raise NotPlain(f"a number does not fit in 64 bits ({dtype.__name__}): print the largest") from None
    except ValueError:
        raise NotPlain("the inner lists have different lengths: make all as long as the first") from None


def _walk(value, allowed, kind, depth, budget):
    """Copy nested lists and tuples of numbers. Raises NotPlain for anything else.

    allowed: the exact types of numbers. depth: levels of nesting left. budget: [numbers left].
    """
    if type(value) in (list, tuple):
        if depth == 0:
            raise NotPlain(f"lists are nested more than {MAX_DEPTH} levels deep: does a list contain itself?")
        return [_walk(inner, allowed, kind, depth - 1, budget) for inner in value]
    budget[0] -= 1
    if budget[0] < 0:
        raise NotPlain(f"there are more than {MAX_ELEMENTS:,} numbers: return only what the task asks for")
    if type(value) is np.ndarray:
        raise NotPlain("got several arrays in a list or a tuple, expected one: np.stack(...) joins them")
    if type(value) not in allowed:
        wanted = "a whole number" if kind == "integers" else "a number"
        shown = f" ({value!r})" if type(value) in (float, bool, str) else ""
        more = f": int({value}) is {int(value)}" if type(value) is bool else ""
        raise NotPlain(f"got {named(value)}{shown[:60]}, expected {wanted}{more}")
    return int(value) if type(value) in WHOLE else float(value)


def _copy(array):
    return np.array(array, order="C", copy=True, subok=False)


def named(value):
    """A value's type with its article, for a message: "None" or "an int"."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"[:60]
