"""Rewrites numba's messages of kernels that do not compile for students, with the line of their source."""

import difflib
import inspect
import linecache
import math
import os
import re

import numpy as np

from warplab.simt.toolchain.compiler_notes import translated

NOISE = ("Failed in", "During:", "This error may", "-", "File ", "def ", ">>>", "^")


def does_not_compile(error, function=None):
    """The message for an error: "does not compile: `rbg` is not defined (line 6: `grey = rbg[row, col]`)".

    ``function``: the kernel's Python function, if the error does not have it (``numba_hook`` adds it).
    """
    text, function = str(error), function or getattr(error, "warplab_kernel", None)
    number, line = _place(error, text, function)
    names = function.__code__.co_names if isinstance(error, RecursionError) and function else ()
    if drawn := [name for name in names if hasattr(np.random, name)]:  # numba recurses on np.random
        text = f"Unknown attribute '{drawn[-1]}' of type Module(<module 'numpy.random'"
    words, looks = in_words(text, line)
    if not number and function is not None:
        number, line = _where(function, looks)
    if "atomic" in line and "to unpack" in text:
        words = "an atomic takes three things: the array, the index in it, and the value"
    where = f" (line {number}{f': `{line[:80]}`' if line else ''})" if number else ""
    return f"does not compile: {words}{where}"


def in_words(text, line=""):
    """(numba's message as one clause, a regular expression of the line that it may be about).

    ``line``: the student's line if it is known, for messages that depend on it.
    """
    overloads = re.split(r"(?=\n *Overload in function )", text)
    text = "".join(one for one in overloads if "File: numba/cuda/" in one or "File: numba/" not in one)
    flat = " ".join(text.split())
    ufunc = re.fullmatch(r"<ufunc '(\w+)'>", flat)
    if ufunc:
        name = ufunc[1]
        if hasattr(math, name):
            return f"a kernel has no `np.{name}`, and `math.{name}` does it to one number", rf"\b{name}\("
        whole = "arithmetic with whole arrays: use single numbers, in a loop"
        return f"a kernel has no `np.{name}` and no {whole}", ""
    meant, looks = translated("numba", flat, _type if "Cannot unify" in flat else str)
    if meant:
        return meant + _did_you_mean(meant), looks
    signature = re.search(r">>> (.+)", text)
    if signature:
        return _signature(signature[1].strip()), rf"\b{signature[1].partition('(')[0]}\("
    lines = [row.strip() for row in text.splitlines()]
    kept = [row for row in lines if row and not row.startswith(NOISE)][:2]
    kept = [row for row in kept if row not in (line, "<source elided>")]  # the line is quoted elsewhere
    return " ".join(kept)[:300] or "numba does not say why", ""


def _did_you_mean(meant):
    found = re.fullmatch(r"there is no `cuda\.(\w+)`", meant)
    if not found:
        return ""
    from numba import cuda

    near = difflib.get_close_matches(found[1], dir(cuda), 1, 0.5)
    return f"; did you mean `cuda.{near[0]}`?" if near else ""


def _signature(text):
    """A clause for a call that numba does not support, such as ``mul(int32, Dim3)``."""
    found = re.fullmatch(r"(.+?)\((.*)\)", text)
    if not found:
        return f"a kernel cannot do `{text[:200]}`"
    name, types = found[1], _parted(found[2])
    if name in ("getitem", "setitem", "static_getitem", "static_setitem") and len(types) > 1:
        return _index(name, types)
    told = [_type(one) for one in types]
    symbol, _ = translated("operators", name)
    if symbol and len(told) == 2:
        more = ": take `.x`, `.y` or `.z` of it" if "Dim3" in types else ""
        return f"`{symbol}` does not go between {told[0]} and {told[1]}{more}"
    if name == "bool":
        return f"a condition needs one value, and this is {told[0]}"
    called = name if re.fullmatch(r"[\w.]+", name) else "this function"
    if called in ("zeros", "empty", "ones", "array", "zeros_like", "full"):
        return translated("numba", "NRT required")[0]
    called = called.removeprefix("npy_").removeprefix("array_")  # numba's names for methods of arrays
    more = (
        ": take its elements one by one, in a loop" if any(one.startswith("an array") for one in told) else ""
    )
    called = called if called == "this function" else f"`{called}`"
    return f"a kernel cannot call {called} with {' and '.join(told)}{more}"


def _index(name, types):
    """A clause for an index that numba does not support, by the types of the object, index and value."""
    array = re.fullmatch(r"array\(\w+, (\d)d, \w\)", types[0])
    if not array:
        return f"{_type(types[0])} cannot be indexed in a kernel"
    count = re.fullmatch(r"UniTuple\(.* x (\d+)\)", types[1])
    given = int(count[1]) if count else types[1].count(",") + 1 if types[1].startswith("Tuple(") else 1
    if given > int(array[1]):
        return f"{_type(types[0])} is given {given} indices"
    if "float" in types[1]:
        return "an index must be a whole number, and this one is a float: use // instead of /, or int(...)"
    if "Dim3" in types[1]:
        return "an index must be a whole number, and this one is a size in three directions: take `.x` of it"
    if "setitem" in name and len(types) > 2:
        value = re.match(r"array\(\w+, (\d)d", types[2])
        if value:
            return f"one element cannot hold {_type(types[2])}: an index is missing on the right of the ="
        return f"an element of the array cannot hold {_type(types[2])}"
    return f"{_type(types[0])} cannot be indexed like this"


def _type(name):
    """A type of numba, in words."""
    return translated("types of numba", name.strip())[0] or name.strip()[:60]


def _parted(text):
    """The arguments of a signature, split at commas outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([{<") - (sign in ")]}>")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _place(error, text, function):
    """(number, text) of the student's line: that in numba's message, else one with the name in it."""
    places = re.findall(r'File "([^"]+)", line (\d+):', text)
    places += re.findall(r"(?:at|from) (\S[^\n]*?) \((\d+)\)", text)
    places.append(getattr(error, "warplab_place", ("numba", 0)))  # set by numba_hook
    for file, number in places:
        if file and "numba" not in file:
            n, whole = int(number), os.path.abspath(file)  # numba gives a relative path
            return n, (linecache.getline(file, n) or linecache.getline(whole, n)).strip()
    name = re.search(r"attribute '(\w+)'|name '(\w+)'|<ufunc '(\w+)'>", text)
    word = name and next(filter(None, name.groups()))
    return _where(function, rf"\b{word}\b") if word and function is not None else (0, "")


def _where(function, looks):
    """(number, text) of the first line of a function that matches ``looks``; (0, "") if none does."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError, SyntaxError):
        return 0, ""
    below = (n - first for *_, n in function.__code__.co_lines() if n and n > first)
    begin = min(below, default=0)  # the first line after the docstring, which may have formulas too
    body = enumerate(lines[begin:], first + begin)
    return next(((n, line.strip()) for n, line in body if looks and re.search(looks, line)), (0, ""))
