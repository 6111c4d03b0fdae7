"""Zip files, read in place: no path in an archive is written to, and no size stated in it is trusted."""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

import yaml

from autograder.collect.handed_in import HandedIn, Owner, Refusal, is_notebook, is_request
from autograder.collect.platforms import parse_name, top_folder
from autograder.user_error import UserError
from autograder.validate.validate import MAX_BYTES

GRADESCOPE = "submission_metadata.yml"
MOST_FILES = 50_000  # in a class's archive
MOST_INSIDE = 1_000  # in an archive that a student handed in
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others allocate as much memory as the archive states
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, EOFError, ValueError, OSError)


def in_archive(path: Path, wanted: str, pattern: re.Pattern[str] | None) -> Iterator[HandedIn]:
    """Yield what the archive of a class holds; parts that cannot be taken have `refused` set.

    wanted: the notebook's file name. pattern: as platforms.parse_name(). Raises UserError if the archive
    cannot be read.
    """
    try:
        archive = zipfile.ZipFile(path)
        members = archive.infolist()
    except BROKEN as problem:
        raise UserError(f"{path} is no zip archive that can be read: {problem}; download it again") from None
    if len(members) > MOST_FILES:
        raise UserError(
            f"{path} holds {len(members):,} files, the limit is {MOST_FILES:,}; give a folder instead"
        )
    files = [one for one in members if not one.is_dir()]
    around = top_folder(one.filename for one in files if "__MACOSX" not in one.filename)
    if about := [one for one in files if one.filename == str(PurePosixPath(around, GRADESCOPE))]:
        yield from gradescope(archive, about[0], files, wanted)
        return
    for member in files:
        yield from by_name(member.filename, partial(content, archive, member), wanted, pattern, around)


def gradescope(
    archive: zipfile.ZipFile, about: zipfile.ZipInfo, files: Iterable[zipfile.ZipInfo], wanted: str
) -> Iterator[HandedIn]:
    """Yield what Gradescope's "Export Submissions" holds: a folder for each submission.

    about: the list of each submission's owners and time. Raises UserError if it has another format.
    """
    try:
        listed = yaml.safe_load(content(archive, about))
        known = {
            folder: (_owners(one), (at := one.get(":created_at")) and at.astimezone(UTC).replace(tzinfo=None))
            for folder, one in listed.items()
        }
    except (Refusal, yaml.YAMLError, KeyError, AttributeError, TypeError) as problem:
        raise UserError(f"{about.filename} is not as Gradescope writes it: {problem}") from None
    top = PurePosixPath(about.filename).parent
    for member in files:
        path = PurePosixPath(member.filename)
        folder = path.relative_to(top).parts[0] if path.is_relative_to(top) else ""
        (owner, *others), received = known.get(folder, ([Owner()], None))
        note = "Gradescope's own list of whose and when" if member is about else ""
        one = HandedIn(owner, member.filename, partial(content, archive, member), (), received, note)
        yield of_kind(replace(one, others=tuple(others)), path.name, wanted)


def _owners(one: dict[str, Any]) -> list[Owner]:
    """The students that Gradescope's list names for a folder; one empty Owner where it names nobody."""
    found = ((who.get(":sid") or "", who.get(":email") or "") for who in one[":submitters"])
    return [Owner(str(number or email), str(email)) for number, email in found] or [Owner()]


def by_name(
    place: str, read: Callable[[], bytes], wanted: str, pattern: re.Pattern[str] | None, around: str = ""
) -> Iterator[HandedIn]:
    """Yield a student's file, with the owner that its name tells; for a zip archive, the files in it.

    place: its path. read: returns its bytes, or raises Refusal. pattern, around: as platforms.parse_name().
    """
    try:
        owner, file, order, note = parse_name(place, pattern, around)
    except Refusal as problem:
        yield HandedIn(Owner(student=place[:60]), place, refused=str(problem))
        return
    if not file.lower().endswith(".zip"):
        yield of_kind(HandedIn(owner, place, read, order, note=note), file, wanted)
        return
    try:
        inside = _members(read)
        for number, name in inside:
            one = HandedIn(owner, f"{place}/{name}", partial(_member, read, number), order, note=note)
            yield of_kind(one, name, wanted)
        if not inside:
            raise Refusal("an archive without a file")
    except Refusal as problem:
        yield HandedIn(owner, place, order=order, note=note, refused=str(problem))


def of_kind(one: HandedIn, file: str, wanted: str) -> HandedIn:
    """`one` with `read`, `named` and `asks` set by the file's name: only notebooks and requests are read.

    A file in the __MACOSX folder that macOS adds to an archive is neither.
    """
    notebook = file.lower().endswith(".ipynb") and "__MACOSX" not in PurePosixPath(one.place).parts
    own, asks = notebook and is_notebook(file, wanted), is_request(file)
    return replace(one, read=one.read if notebook or asks else None, named=own, asks=asks)


def _members(read: Callable[[], bytes]) -> list[tuple[int, str]]:
    """(number, name) of the files in an archive that a student handed in. Raises Refusal."""
    try:
        with zipfile.ZipFile(io.BytesIO(read())) as archive:
            members = archive.infolist()
    except BROKEN as problem:
        raise Refusal(f"an archive that cannot be read: {problem}") from None
    if len(members) > MOST_INSIDE:
        raise Refusal(f"an archive of {len(members):,} files, the limit is {MOST_INSIDE:,}")
    return [(number, one.filename) for number, one in enumerate(members) if not one.is_dir()]


def _member(read: Callable[[], bytes], number: int) -> bytes:
    """One file of an archive that a student handed in. The archive is read anew for each, to save memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(read())) as archive:
            return content(archive, archive.infolist()[number])
    except BROKEN as problem:
        raise Refusal(f"an archive that cannot be read: {problem}") from None


def content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of one regular file of at most MAX_BYTES. Raises Refusal."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Refusal("a link or special file; only regular files are read")
    if member.flag_bits & 1:
        raise Refusal("it is locked with a password")
    if member.compress_type not in PLAIN:
        raise Refusal("it is packed in a way other than zip's usual one: pack it again")
    try:
        with archive.open(member) as file:
            return at_most(file)
    except BROKEN as problem:
        raise Refusal(f"it cannot be unpacked: {problem}") from None


def at_most(file: IO[bytes]) -> bytes:
    """The bytes of a file. Raises Refusal if it is larger than a notebook may be."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Refusal(f"it has more than {MAX_BYTES // 2**20} MiB: clear all outputs and save again")
    return data
