"""Parses the names that Canvas and Moodle give students' files in their archives.

Canvas (lib/content_zipper.rb): NAME[_LATE]_USER_UPLOAD_FILE, the name in lower case letters only, such as
`lovelaceada_LATE_1234_56789_ps04_matmul-1.ipynb`; with anonymous grading it is anon_CODE. Text typed into
Canvas is NAME[_LATE]_USER_text.html, or _link.html.
Moodle (mod/assign/classes/downloader.php): FULL NAME_NUMBER_assignsubmission_PLUGIN/FILE, with folders or
with _ before the file, PLUGIN being file or onlinetext. The number is the participant's in this assignment,
as in the grading worksheet; a group has its name and its own number, "Default group" has none.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from autograder.collect.handed_in import Owner, Refusal
from autograder.user_error import UserError

CANVAS = re.compile(
    r"(?:(?P<name>\w+?)_)?(?:(?P<late>LATE)_)?(?P<number>\d+)_"
    r"(?:(?P<upload>\d+)_(?P<file>.+)|(?P<typed>text|link)\.html)"
)
ANONYMOUS = re.compile(r"anon_(?:LATE_)?\w+?_\d+_(?P<file>.+)")
LATE, NAMELESS = "late, says Canvas", "graded anonymously, Canvas gave no name"
MOODLE = re.compile(
    r"(?P<name>[^/]+?)(?:_(?P<number>\d+))?_assignsubmission_[a-z]+(?:_?/(?:.*/)?|_)(?P<file>[^/]+)"
)
BLIND = "Participant"  # the name of everybody in Moodle's anonymous submissions
LONGEST = 1000  # characters of a path
Named = tuple[Owner, str, tuple[int | str, ...], str]
"""(owner, the file's own name, sort key among one person's files, a note)."""


def top_folder(paths: Iterable[str]) -> str:
    """The one folder that contains everything in an archive; "" without one. Hidden files are ignored."""
    every = [PurePosixPath(path).parts for path in paths]
    first = {parts[0] if len(parts) > 1 else "" for parts in every if parts and not parts[-1].startswith(".")}
    return first.pop() if len(first) == 1 else ""


def parse_name(path: str, pattern: re.Pattern[str] | None = None, around: str = "") -> Named:
    """What a path in an archive tells of its file; an empty Owner where it names nobody.

    pattern: used instead of the platforms' formats; has the groups student_id and file_id, perhaps timestamp,
    as in nbgrader's zip_collect. around: the archive's top_folder(). Only the first name below that tells the
    owner, as the student chose the rest of the path. Raises Refusal for a path that leads out of the archive.
    """
    parts = PurePosixPath(path).parts
    if len(path) > LONGEST or "\\" in path or path.startswith("/") or ".." in parts or "\0" in path:
        raise Refusal("its path leads out of the archive, or is too long")
    name = parts[-1] if parts else ""
    if pattern is not None:
        found = pattern.match(name)
        return _by_pattern(found, name) if found else (Owner(), name, (), "")
    below = parts[1:] if around and parts[:1] == (around,) else parts
    found = MOODLE.fullmatch(path) or MOODLE.fullmatch("/".join(below))
    if found:
        return Owner(name=found["name"], number=found["number"] or ""), found["file"], (), ""
    if len(below) > 1:
        alone = len(below) == 2 and re.fullmatch(r"ps\d+", below[0])
        return Owner(student=around if around and alone else below[0]), name, (), ""
    if found := ANONYMOUS.fullmatch(name):
        return Owner(), found["file"], (), NAMELESS
    if found := CANVAS.fullmatch(name):
        owner = Owner(name=found["name"] or "", number=found["number"], by_number=True)
        upload, file = int((found["upload"] or "0")[:18]), found["file"] or f"{found['typed']}.html"
        return owner, file, (upload,), LATE if found["late"] else ""
    return Owner(student=around), name, (), ""


def _by_pattern(found: re.Match[str], name: str) -> Named:
    groups = found.groupdict()
    file = groups["file_id"] or ""
    file += "" if file.endswith((".ipynb", ".zip")) else ".ipynb"
    return Owner(student=groups["student_id"]), file, (groups.get("timestamp") or "",), ""


def checked_pattern(text: str) -> re.Pattern[str]:
    """Compile --pattern. Raises UserError if it is not a regular expression or lacks a group."""
    try:
        pattern = re.compile(text)
    except re.error as problem:
        raise UserError(f"--pattern cannot be used: it is no regular expression: {problem}") from None
    if lacking := {"student_id", "file_id"} - set(pattern.groupindex):
        raise UserError(f"--pattern cannot be used: it lacks (?P<{min(lacking)}>...)")
    return pattern
