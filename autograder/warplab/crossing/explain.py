"""What goes wrong beside the student's code, said in one or two lines that the student can act on."""

import re
import traceback

from warplab.simt.errors import LaunchError

MEANT = {  # a piece of numba's message: what the student did, and what to do instead
    "to none for '$": "a kernel returns nothing: write the result into one of its arrays",
    "missing a required argument: 'dtype'": (
        "a shared or local array needs a type as well as a shape: `cuda.shared.array((16, 16), float32)`"
    ),
    "NRT required": (
        "a kernel cannot make a list or a new array, and adding or copying slices makes one: "
        "use single numbers, in a loop"
    ),
    "required for linear algebra": (
        "a kernel has no `@` and no dot for arrays: write the sum as a loop over single numbers"
    ),
}


class Refused(Exception):
    """The submission cannot be run at all; the message is a sentence for the student."""


def explain(error):
    """One or two lines a student can act on: the message, and the line of their own code it came from."""
    if isinstance(error, Refused | LaunchError):
        return str(error)
    if isinstance(error, NotImplementedError):
        return "not written yet: the stub is still there" + _student_line(error)
    try:
        text = str(error).strip()
    except BaseException:  # noqa: BLE001 - a student's exception class may fail to print itself
        text = "(its message cannot be shown)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if type(error).__module__.startswith("numba") or isinstance(error, ImportError):
        lines = _numba_lines(lines)
    where = _student_line(error)
    head = f"{type(error).__name__}: {' '.join(lines[:3])[:400]}" if lines else type(error).__name__
    return f"{head}{where}"


def _numba_lines(lines):
    """numba's messages run to a page: keep what failed and the source line it points at."""
    for sign, meant in MEANT.items():
        if any(sign in line for line in lines):
            line = next(
                (found[1] for line in lines if (found := re.search(r"^During: .*\((\d+)\)$", line))), None
            )
            return [meant + (f" (line {line} of the cell)" if line else "")]
    if any("array>" in line or ".array at" in line for line in lines[:3]):
        return [
            "the shape of a shared or local array must be constants: numbers, or names set outside the kernel"
        ]
    missing = next((line.removeprefix(">>>").strip() for line in lines if line.startswith(">>>")), None)
    if missing:
        return [f"a kernel cannot do `{missing}`"]
    noise = ("Failed in", "During:", "This error may", "-", "File ")
    place = [f"({line})" for line in lines if line.startswith("File ")]
    return [line for line in lines if not line.startswith(noise)][:2] + place[:1]


def _student_line(error):
    """' (line 7: `source`)' for the innermost frame outside this package and installed libraries."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(part in frame.filename for part in ("site-packages", "/warplab/", "/lib/python3", "<frozen ")):
            continue
        source = f": `{frame.line[:80]}`" if frame.line else ""
        return f" (line {frame.lineno}{source})"
    return ""
