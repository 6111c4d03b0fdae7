"""Words errors of the student's code in one or two lines that the student can act on."""

import ast
import linecache
import re
import traceback

from warplab.crossing.endless import Endless
from warplab.simt.errors import NOT_READERS, LaunchError
from warplab.simt.frontends.numba_words import does_not_compile
from warplab.simt.toolchain.compiler_notes import translated, triton_message

MOST = 2000  # characters of a message
WRITTEN = (ast.For, ast.While, ast.If, ast.Return, ast.AugAssign)
# errors that numba raises with other modules' exception types
OF_NUMBA = re.compile("NRT required|required for linear algebra|^<ufunc '")


class Refused(Exception):
    """The submission cannot be run at all; the message is a sentence for the student."""


def explain(error):
    """The message of an error and the line of the student's code that raised it, in one or two lines."""
    return _explained(error)[:MOST]


def _explained(error):
    if isinstance(error, LaunchError) or isinstance(error, Endless) and error.where:  # with the kernel's line
        return str(error)
    if isinstance(error, Refused | Endless):
        return f"{error}{_student_line(error)}"
    frame = _student_frame(error)
    stub = "NotImplementedError"
    if isinstance(error, NotImplementedError) and frame and stub in (frame.line or stub):
        return stub_message(frame.filename, frame.lineno)
    text = str(traceback.TracebackException.from_exception(error)).strip()  # includes Python's "Did you mean"
    if isinstance(error, SyntaxError) and error.text:
        return f"{type(error).__name__}: {error.msg} (line {error.lineno}: `{error.text.strip()[:80]}`)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if type(error).__module__.startswith("numba") or OF_NUMBA.search(text):
        return does_not_compile(error)
    if said := triton_message(text):
        return said
    head = f"{type(error).__name__}: {' '.join(lines[:3])[:400]}" if lines else type(error).__name__
    meant, _ = translated("python", text)
    head = "" if meant and "warplab." in head else head  # our own names mean nothing to a student
    return f"{head}{head and meant and ': '}{meant}{_student_line(error)}"


def stub_message(file, number):
    """The message about a stub's `raise NotImplementedError()` on line `number` of a file.

    It depends on whether the student has written code around it: a stub alone has no loop and no return.
    """
    place = f"line {number} is `raise NotImplementedError()`"
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        tree = ast.Module([], [])
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= number <= (node.end_lineno or 0)
    ]
    inner = max(around, key=lambda node: node.lineno, default=tree)
    stored = [
        node for node in ast.walk(inner) if isinstance(node, ast.Subscript) and type(node.ctx) is ast.Store
    ]
    if stored or any(isinstance(node, WRITTEN) for node in ast.walk(inner)):
        return f"{place} still, which stops your code: delete that line of the stub"
    return f"not written yet: {place}; your code takes its place"


def _student_line(error):
    """' (line 7: `source`)' for the innermost frame of the student's code; "" without one."""
    frame = _student_frame(error)
    source = f": `{frame.line[:80]}`" if frame and frame.line else ""
    return f" (line {frame.lineno}{source})" if frame else ""


def _student_frame(error):
    """The innermost frame outside this package and installed libraries; None where there is none."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((f for f in frames if not any(part in f.filename for part in NOT_READERS)), None)
