"""The names under which Canvas and Moodle put students' files into their archives.

Canvas (lib/content_zipper.rb): NAME[_LATE]_USER_UPLOAD_FILE, the name in small letters without signs, such as
`lovelaceada_LATE_1234_56789_ps04_matmul-1.ipynb`; anonymous grading has anon_CODE in its place.
Moodle (mod/assign): FULL NAME_NUMBER_assignsubmission_file/FILE, with folders or with _ before the file, the
number being the participant's in this assignment, as in the grading worksheet.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from autograder.collect.handed_in import Owner, Refusal

CANVAS = re.compile(r"(?:(?P<name>\w+?)_)?(?:(?P<late>LATE)_)?(?P<number>\d+)_(?P<upload>\d+)_(?P<file>.+)")
ANONYMOUS = re.compile(r"anon_(?:LATE_)?\w+?_\d+_.+")
MOODLE = re.compile(r"(?P<name>[^/]+)_(?P<number>\d+)_assignsubmission_file(?:_?/(?:.*/)?|_)(?P<file>[^/]+)")
LONGEST = 1000  # characters of a path
Named = tuple[Owner, str, tuple[int | str, ...], str]
"""(whose, the file's own name, its place among several of one person, a note)."""


def named(path: str, pattern: re.Pattern[str] | None = None) -> Named | None:
    """What a path in an archive says; None for what is no student's.

    pattern: in place of all we know, with the groups student_id and file_id, and perhaps timestamp, as in
    nbgrader's zip_collect. Raises Refusal for a path that tries to lead elsewhere.
    """
    parts = PurePosixPath(path).parts
    if len(path) > LONGEST or "\\" in path or path.startswith("/") or ".." in parts or "\0" in path:
        raise Refusal("its path leads out of the archive, or is too long")
    name = parts[-1] if parts else ""
    if pattern is not None:
        found = pattern.match(name)
        return _by_pattern(found, name) if found else None
    found = MOODLE.fullmatch(path) or MOODLE.fullmatch("/".join(parts[1:]))
    if found:
        return Owner(name=found["name"], number=found["number"]), found["file"], (), ""
    if ANONYMOUS.fullmatch(name):
        raise Refusal("Canvas graded anonymously and gave no name: end that, and download again")
    found = CANVAS.fullmatch(name)
    if found:
        owner = Owner(name=found["name"] or "", number=found["number"], by_number=True)
        return (
            owner,
            found["file"],
            (int(found["upload"][:18]),),
            "late, says Canvas" if found["late"] else "",
        )
    return (Owner(student=_owner(parts)), name, (), "") if len(parts) > 1 else None


def _by_pattern(found: re.Match[str], name: str) -> Named:
    groups = found.groupdict()
    file = (
        groups["file_id"]
        if (groups["file_id"] or "").endswith((".ipynb", ".zip"))
        else f"{groups['file_id']}.ipynb"
    )
    return Owner(student=groups["student_id"]), file, (groups.get("timestamp") or "",), ""


def _owner(parts: Sequence[str]) -> str:
    """The student's folder in STUDENT/FILE and STUDENT/SET/FILE, below one folder for all of them or not."""
    return parts[-3] if len(parts) > 2 and re.fullmatch(r"ps\d+", parts[-2]) else parts[-2]


def checked_pattern(text: str) -> re.Pattern[str]:
    """--pattern, compiled. Raises ValueError with what it lacks."""
    try:
        pattern = re.compile(text)
    except re.error as problem:
        raise ValueError(f"it is no regular expression: {problem}") from None
    lacking = {"student_id", "file_id"} - set(pattern.groupindex)
    if lacking:
        raise ValueError(f"it lacks (?P<{sorted(lacking)[0]}>...)")
    return pattern
