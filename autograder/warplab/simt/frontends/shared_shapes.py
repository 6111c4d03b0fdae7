"""Finds the shapes of shared arrays in CUDA C++ source, as PTX has only their names and sizes in bytes."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Sequence
from dataclasses import replace

from warplab.simt.engine.indices import SHARED_PREFIX, SharedArray, shared_array, shared_symbol

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
DECLARATION = re.compile(r"__shared__([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*);")
DECLARATOR = re.compile(r"(\w+)\s*((?:\[[^\[\]]+\]\s*)+)")
NUMBER = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+)$"
    r"|\bconst(?:expr)?\b[^=;(){}]*\b(\w+)\s*=([^;{}]+);",
    re.M,
)
SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")
BYTES = {"char": 1, "bool": 1, "half": 2, "short": 2, "int": 4, "unsigned": 4, "float": 4, "double": 8}
VARIABLE = re.compile(r"\.shared\s+(?:\.align\s+\d+\s+)?\.b8\s+([\w$]+)\[(\d+)\]\s*;")
DTYPES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}  # some dtype of each size
DOES = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv}


def shaped(arrays: Sequence[SharedArray], source: str) -> list[SharedArray]:
    """The arrays with the shapes that the source declares by numbers and constants.

    An array gets no shape if the source declares its name with several shapes of its size.
    """
    text = COMMENT.sub(" ", source)
    declared: dict[str, set[tuple[tuple[int, ...], int | None]]] = {}
    meanings: dict[str, set[str]] = {}
    for macro, value, constant, initial in NUMBER.findall(text):
        meanings.setdefault(macro or constant, set()).add((value or initial).strip())
    constants = {name: found.pop() for name, found in meanings.items() if len(found) == 1}
    for declaration in DECLARATION.findall(text):
        kinds = {BYTES[word] for word in re.findall(r"\w+", declaration.split("[")[0]) if word in BYTES}
        for name, brackets in DECLARATOR.findall(declaration):
            sizes = [_value(part, constants) for part in re.findall(r"\[([^\[\]]+)\]", brackets)]
            known = tuple(size for size in sizes if size is not None and size > 0)
            if len(known) == len(sizes):
                declared.setdefault(name, set()).add((known, min(kinds, default=None)))
    return [_with_shape(array, declared.get(array.name, set())) for array in arrays]


def named(ptx: str, source: str) -> str:
    """The PTX with the shapes in the names of its shared variables, to be used where there is no source."""
    for number, (symbol, size) in enumerate(VARIABLE.findall(ptx)):
        [array] = shaped([shared_array(symbol, 0, int(size))], source)
        if array.shape and array.itemsize in DTYPES:
            own = f"{SHARED_PREFIX}{number}"  # the prefix of numba's arrays, whose names have the same form
            described = shared_symbol(own, array.name, array.shape, DTYPES[array.itemsize])
            ptx = re.sub(rf"(?<![\w$]){re.escape(symbol)}(?![\w$])", described, ptx)
    return ptx


def _with_shape(array: SharedArray, declared) -> SharedArray:
    fits = {
        (shape, array.size // math.prod(shape))
        for shape, width in declared
        if array.size and array.size % math.prod(shape) == 0
        if width in (None, array.size // math.prod(shape))
    }
    if array.shape or len(fits) != 1:
        return array
    [(shape, itemsize)] = fits
    return replace(array, shape=shape, itemsize=itemsize)


def _value(expression: str, constants: dict[str, str], depth: int = 8) -> int | None:
    """The value of a constant expression of C; None if it uses a name that is not in ``constants``."""
    try:
        tree = ast.parse(SUFFIX.sub(r"\1", expression).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return _of(tree, constants, depth)


def _of(node: ast.expr, constants: dict[str, str], depth: int) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name) and node.id in constants and depth:
        return _value(constants[node.id], constants, depth - 1)
    if isinstance(node, ast.BinOp) and type(node.op) in DOES:
        left, right = _of(node.left, constants, depth), _of(node.right, constants, depth)
        if left is None or right is None or (isinstance(node.op, ast.Div) and right == 0):
            return None
        return DOES[type(node.op)](left, right)
    return None
