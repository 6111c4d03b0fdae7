"""The one exception that a person at the command line is meant to see."""

import difflib


class UserError(Exception):
    """Something the user can put right. The message is one line: what, where, the limit, the next step. status: of the exit."""

    status = 2


def nearest(word, known):
    """' (did you mean "ps04"?)' for the known name closest to `word`, or the list of known names if none is close."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=2, cutoff=0.5)
    if close:
        return f" (did you mean {' or '.join(close)}?)"
    return f" (known: {', '.join(known)})" if known else ""
