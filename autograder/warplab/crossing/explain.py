"""What goes wrong beside the student's code, said in one or two lines that the student can act on."""

import re
import traceback

from warplab.crossing.endless import Endless
from warplab.simt.errors import LaunchError
from warplab.simt.frontends.numba_words import does_not_compile

# errors that numba raises and does not call its own
OF_NUMBA = re.compile("NRT required|required for linear algebra|^<ufunc '")


class Refused(Exception):
    """The submission cannot be run at all; the message is a sentence for the student."""


def explain(error):
    """One or two lines a student can act on: the message, and the line of their own code it came from."""
    if isinstance(error, Refused | LaunchError):
        return str(error)
    if isinstance(error, Endless):
        return f"{error}{_student_line(error)}"
    if isinstance(error, NotImplementedError):
        return "not written yet: the stub is still there" + _student_line(error)
    try:
        text = str(error).strip()
    except BaseException:  # noqa: BLE001 - a student's exception class may fail to print itself
        text = "(its message cannot be shown)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if type(error).__module__.startswith("numba") or OF_NUMBA.search(text):
        return does_not_compile(error)
    where = _student_line(error)
    head = f"{type(error).__name__}: {' '.join(lines[:3])[:400]}" if lines else type(error).__name__
    return f"{head}{where}"


def _student_line(error):
    """' (line 7: `source`)' for the innermost frame outside this package and installed libraries."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(part in frame.filename for part in ("site-packages", "/warplab/", "/lib/python3", "<frozen ")):
            continue
        source = f": `{frame.line[:80]}`" if frame.line else ""
        return f" (line {frame.lineno}{source})"
    return ""
