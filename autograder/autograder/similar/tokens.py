"""The tokens of a program that a disguised copy keeps: without comments, layout, own names and numbers."""

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterator

LENGTH = 8  # tokens of one shingle
Shingle = tuple[str, ...]
STRING = r"""[rbfuRBFU]{0,2}(?:"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)"""
WORD = r"(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>[^\w\s])"
# possessive quantifiers: no alternative backtracks, so that the time is linear in the length
PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<long>[rbfuRBFU]{0,2}(?:\"{3}(?:(?!\"{3}).)*+(?:\"{3}|\Z)|'{3}(?:(?!'{3}).)*+(?:'{3}|\Z)))"
    rf"|(?P<text>{STRING})|{WORD}",
    re.DOTALL,
)
CUDA_CPP = re.compile(
    rf"(?P<comment>//[^\n]*|/\*(?:(?!\*/).)*+(?:\*/|\Z))|(?P<text>{STRING})|{WORD}", re.DOTALL
)
EDGES = re.compile(r"""\A[rbfuRBFU]{0,2}(?:\"{3}|'{3})|(?:\"{3}|'{3})\Z""")
A_VALUE_FOLLOWS = ("(", "[", ",", "=", "+")
KERNEL = re.compile(r"__(global|device)__")
CPP_WORDS = """
auto bool break case char const constexpr continue default do double else enum extern float for if inline int
long namespace return short signed sizeof static struct switch template typedef typename unsigned using void
volatile while __global__ __device__ __shared__ __restrict__ __syncthreads __syncwarp __shfl_down_sync
__shfl_xor_sync atomicAdd threadIdx blockIdx blockDim gridDim half
""".split()
KNOWN = frozenset((*keyword.kwlist, *dir(builtins), *CPP_WORDS))


def tokens(source: str) -> list[tuple[str, int]]:
    """(token, its line from 0 on) of Python code and of code in its triple-quoted strings, not docstrings.

    A name that the program defines becomes "name" unless it follows a dot; numbers become "number" and other
    strings "text".
    """
    return list(_tokens(source, PYTHON, 0))


def _tokens(source: str, language: re.Pattern[str], line: int) -> Iterator[tuple[str, int]]:
    at, before = 0, ""
    for match in language.finditer(source):
        line += source.count("\n", at, match.start())
        at = match.start()
        kind, text = match.lastgroup, match.group()
        if kind == "long" and KERNEL.search(text):
            yield from _tokens(EDGES.sub("", text), CUDA_CPP, line)
        elif kind == "long" and before in A_VALUE_FOLLOWS:
            yield from _tokens(EDGES.sub("", text), PYTHON, line)  # may be code for exec()
        elif kind == "name":
            yield (text if text in KNOWN or before == "." else "name"), line
        elif kind in ("number", "text"):
            yield kind, line
        elif kind == "sign":
            yield text, line
        before = text


def shingles(source: str) -> Counter[Shingle]:
    """How often each run of LENGTH tokens (shingle) occurs in a program."""
    stream = [token for token, _ in tokens(source)]
    return Counter(tuple(stream[at : at + LENGTH]) for at in range(len(stream) - LENGTH + 1))


def lines_of(source: str, wanted: set[Shingle]) -> set[int]:
    """The lines, from 0 on, on which these shingles occur."""
    stream = tokens(source)
    found: set[int] = set()
    for at in range(len(stream) - LENGTH + 1):
        run = stream[at : at + LENGTH]
        if tuple(token for token, _ in run) in wanted:
            found.update(line for _, line in run)
    return found
