"""What numba refuses to compile, in the words of a course and with the student's line."""

import ast
import difflib
import inspect
import linecache
import math
import re
import textwrap

import numpy as np

ARRAYS = (
    "a kernel cannot make a list or a new array, and adding or copying slices makes one: "
    "use single numbers, in a loop"
)
TEXTS = (
    'a kernel makes and formats no texts; its `print` takes the parts one by one, as in `print("x is", x[i])`'
)
RANDOM = (
    "a kernel has no `{1}.{0}`: numba.cuda.random has generators for threads, "
    "create_xoroshiro128p_states on the host and xoroshiro128p_uniform_float32 in the kernel"
)
MEANT = {  # a piece of numba's message: what the student did, and what to do instead
    r">>> (?:add|mod|getitem)\(.*(?:Literal\[str\]|unicode_type)": TEXTS,
    r"Unknown attribute '\w+' of type (?:Literal\[str\]|unicode_type)": TEXTS,
    r"DictType|of type set\(": "a kernel has no dictionaries and no sets: use arrays",
    r"set_try_status|exception_match": "a kernel has no `try`: ask with an `if` before the line that fails",
    r"IMPORT_NAME": (
        "a kernel cannot import, and no debugger stops in it: import above it, and look with warplab.step"
    ),
    r"insert_unresolved_ref": (
        "a device function of numba-cuda cannot call itself: write a loop, with a local array for a stack"
    ),
    r"of type \w+ is not aligned": (
        "a field of the record is not where its type may stand in memory: make the dtype with align=True"
    ),
    r"printing unimplemented for values of type array": "a kernel prints numbers, and this is an array",
    r"non-precise type array\(pyobject": (
        "an argument is an array of Python objects: give it a type of numbers, as in array.astype(np.float32)"
    ),
    r"Cannot modify readonly array": (
        "an array from outside the kernel can only be read, and keeps the values that it has now: pass it as "
        "an argument"
    ),
    r"Signature mismatch: (\d+) argument types given, but function takes (\d+)": (
        "the number of arguments is {1} where it is defined, and {0} where it is called"
    ),
    r"Unknown attribute 'synchronize' of type Module\(<module 'numba.cuda'": (
        "`cuda.synchronize` is for the host; in a kernel `cuda.syncthreads()` waits for the block's threads"
    ),
    r"Unknown attribute '(\w+)' of type Module\(<module '((?:numpy\.)?random)'": RANDOM,
    r"<bound method Random\.(\w+) of <(random)": RANDOM,
    r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'": "a kernel has no `{1}.{0}`",
    r"to none for '\$": "a kernel returns nothing: write the result into one of its arrays",
    r"missing a required argument: 'dtype'": (
        "a shared or local array needs a type as well as a shape: `cuda.shared.array((16, 16), float32)`"
    ),
    r"NRT required|of type list\(": ARRAYS,
    r"required for linear algebra": (
        "a kernel has no `@` and no dot for arrays, and no `np.linalg`: write a loop over single numbers"
    ),
    r"name '(\w+)' is not defined": "`{0}` is not defined",
    r"Variable '(\w+)' is not defined": "`{0}` has no value yet on this line",
    r"Untyped global name 'numpy_\w+'.*_Intrinsic": ARRAYS,
    r"Untyped global name '(\w+)'.*<class 'function'>": (
        "`{0}` is a function of the host; a kernel calls functions with @cuda.jit(device=True) above them"
    ),
    r"Untyped global name '(\w+)'.*<class '([\w.]+)'>": (
        "`{0}` is a {1}, and a kernel can use numbers, tuples of numbers and device functions from outside"
    ),
    r"Unknown attribute '(\w+)' of type array\(\w+, (\d)d": (
        "an array has no `.{0}` in a kernel; it has shape, size, ndim and dtype"
    ),
    r"Cannot unify (.+) and (.+) for '(\w+)": (
        "`{2}` is {0} in one place and {1} in another: in a kernel a name keeps one type"
    ),
    r"failed to unpack (\w+)": "one value cannot be taken apart into several",
    r"The '(\w+)[^']*' construct is not supported": "a kernel cannot use `{0}`",
    r"module 'numba\.cuda' has no attribute '(\w+)'": "there is no `cuda.{0}`",
    r"module '(\w+)' has no attribute '__call__'": "`{0}` is a module and no function",
    r"array>|\.array at": (
        "the shape of a shared or local array must be constants: numbers, or names set outside the kernel. "
        "Work it out there, as in `SIZE = 2 * TILE * TILE`"
    ),
}
SYMBOLS = dict(
    zip(
        "add sub mul truediv floordiv mod pow lt le gt ge eq ne and_ or_".split(),
        "+ - * / // % ** < <= > >= == != & |".split(),
        strict=True,
    )
)
NOISE = ("Failed in", "During:", "This error may", "-", "File ", "def ", ">>>", "^")
TYPES = {
    r"Literal\[int\]\((-?\d+)\)": "{0}",
    r"Literal\[str\]\(.*\)|unicode_type": "a text",
    r"u?int\d+": "a whole number",
    r"float\d+": "a {} number",
    r"bool(ean)?": "True or False",
    r"array\(\w+, (\d)d, \w\)": "an array of {0} {dimensions}",
    r"Dim3": "a size in three directions",
    r"UniTuple\((.*) x (\d+)\)": "{1} values",
    r"Tuple\(.*\)": "a tuple",
    r"none": "None",
}


def does_not_compile(error, function=None):
    """ "does not compile: `rbg` is not defined (line 6: `grey = rbg[row, col]`)".

    function: the kernel's Python function, where the error does not bring it (``numba_hook``).
    """
    text, function = str(error), function or getattr(error, "warplab_kernel", None)
    number, line = _place(error, text, function)
    words = in_words(text, line)
    names = function.__code__.co_names if isinstance(error, RecursionError) and function else ()
    if drawn := [
        name for name in names if hasattr(np.random, name)
    ]:  # numba's generators of the host do not compile here
        words = RANDOM.format(drawn[-1], "numpy.random")
    if "atomic" in line and "to unpack" in text:
        words = "an atomic takes three things: the array, the index in it, and the value"
    where = f" (line {number}{f': `{line[:80]}`' if line else ''})" if number else ""
    return f"does not compile: {words}{where}"


def in_words(text, line=""):
    """numba's message as one clause. line: the student's, for what the message alone does not tell."""
    overloads = re.split(r"(?=\n *Overload in function )", text)
    text = "".join(one for one in overloads if "File: numba/cuda/" in one or "File: numba/" not in one)
    flat = " ".join(text.split())
    ufunc = re.fullmatch(r"<ufunc '(\w+)'>", flat)
    if ufunc:
        name = ufunc[1]
        if hasattr(math, name):
            return f"a kernel has no `np.{name}`, and `math.{name}` does it to one number"
        return (
            f"a kernel has no `np.{name}` and no arithmetic with whole arrays: use single numbers, in a loop"
        )
    for sign, meant in MEANT.items():
        found = re.search(sign, flat)
        if found:
            named = meant.format(*(_type(one) if "Cannot unify" in sign else one for one in found.groups()))
            return named + _did_you_mean(sign, found)
    signature = re.search(r">>> (.+)", text)
    if signature:
        return _signature(signature[1].strip(), line)
    lines = [row.strip() for row in text.splitlines()]
    kept = [row for row in lines if row and not row.startswith(NOISE)][:2]
    return " ".join(kept)[:300] or "numba does not say why"


def _did_you_mean(sign, found):
    if not sign.startswith("module 'numba"):
        return ""
    from numba import cuda

    near = difflib.get_close_matches(found[1], dir(cuda), 1, 0.5)
    return f"; did you mean `cuda.{near[0]}`?" if near else ""


def _signature(text, line):
    """A call that numba knows no way to do, such as ``mul(int32, Dim3)``."""
    found = re.fullmatch(r"(.+?)\((.*)\)", text)
    if not found:
        return f"a kernel cannot do `{text[:200]}`"
    name, types = found[1], _parted(found[2])
    if name in ("getitem", "setitem", "static_getitem", "static_setitem") and len(types) > 1:
        return _index(name, types)
    told = [_type(one) for one in types]
    if name in SYMBOLS and len(told) == 2:
        more = ": take `.x`, `.y` or `.z` of it" if "Dim3" in types else ""
        return f"`{SYMBOLS[name]}` does not go between {told[0]} and {told[1]}{more}"
    if name == "bool":
        return f"a condition needs one value, and this is {told[0]}"
    called = name if re.fullmatch(r"[\w.]+", name) else "this function"
    if called in ("zeros", "empty", "ones", "array", "zeros_like", "full"):
        return ARRAYS
    called = called.removeprefix("npy_").removeprefix("array_")  # what numba calls the methods of an array
    more = (
        ": take its elements one by one, in a loop" if any(one.startswith("an array") for one in told) else ""
    )
    called = called if called == "this function" else f"`{called}`"
    return f"a kernel cannot call {called} with {' and '.join(told)}{more}"


def _index(name, types):
    """Why elements cannot be taken from, or put into, something."""
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
    """numba's name of a type, in words."""
    name = name.strip()
    for sign, meant in TYPES.items():
        found = re.fullmatch(sign, name)
        if found:
            dimensions = "dimension" if found.groups() and found[1] == "1" else "dimensions"
            return meant.format(*(found.groups() or (name,)), dimensions=dimensions)
    return name[:60]


def _parted(text):
    """The arguments of a signature: at commas that stand in no bracket."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([{<") - (sign in ")]}>")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _place(error, text, function):
    """(number, text) of the student's line: as numba says, or where the name stands."""
    told = re.findall(r'File "([^"]+)", line (\d+):', text) or re.findall(r"at (\S[^\n]*?) \((\d+)\)", text)
    told.append(getattr(error, "warplab_place", ("numba", 0)))  # numba_hook notes it
    for file, number in told:
        if file and "numba" not in file:
            return int(number), linecache.getline(file, int(number)).strip()
    name = re.search(r"attribute '(\w+)'|name '(\w+)'", text)
    return _where(function, name[1] or name[2]) if name and function is not None else (0, "")


def _where(function, name):
    """The line of a function in which a name or an attribute stands first."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return 0, ""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and name in (getattr(node, "id", ""), getattr(node, "attr", "")):
            return first + node.lineno - 1, lines[node.lineno - 1].strip()
    return 0, ""
