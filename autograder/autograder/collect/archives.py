"""Zip files, read in place: no path of an archive is used to write, and no size in it is believed."""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from autograder.collect.handed_in import HandedIn, Owner, Refusal, is_notebook
from autograder.collect.platforms import folder_around, named
from autograder.user_error import UserError
from autograder.validate.validate import MAX_BYTES

MOST_FILES = 50_000  # in a class's archive
MOST_INSIDE = 1_000  # in an archive that a student handed in
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others take as much memory as an archive says
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, EOFError, ValueError, OSError)


def in_archive(path: Path, wanted: str, pattern: re.Pattern[str] | None) -> Iterator[HandedIn]:
    """What the archive of a class holds; unfit parts of it as refusals. UserError if it cannot be read."""
    try:
        archive = zipfile.ZipFile(path)
        members = archive.infolist()
    except BROKEN as problem:
        raise UserError(f"{path} is no zip archive that can be read: {problem}; download it again") from None
    if len(members) > MOST_FILES:
        raise UserError(
            f"{path} holds {len(members):,} files, the limit is {MOST_FILES:,}; give a folder instead"
        )
    files = [one for one in members if not one.is_dir() and "__MACOSX" not in one.filename]
    around = folder_around(one.filename for one in files)
    for member in files:
        yield from by_name(member.filename, partial(content, archive, member), wanted, pattern, around)


def by_name(
    place: str, read: Callable[[], bytes], wanted: str, pattern: re.Pattern[str] | None, around: str = ""
) -> Iterator[HandedIn]:
    """A student's file, as its name says: the notebook, an archive with it inside, or another (no read)."""
    try:
        found = named(place, pattern, around)
    except Refusal as problem:
        yield HandedIn(Owner(student=place[:60]), place, refused=str(problem))
        return
    if found is None:
        return
    owner, file, order, note = found
    if is_notebook(file, wanted):
        yield HandedIn(owner, place, read, order, note=note)
    elif file.lower().endswith(".zip"):
        yield HandedIn(owner, place, partial(_inside, read, wanted), order, note=note)
    else:
        yield HandedIn(owner, place, order=order)


def _inside(read: Callable[[], bytes], wanted: str) -> bytes:
    """The notebook in an archive that a student handed in."""
    try:
        with zipfile.ZipFile(io.BytesIO(read())) as archive:
            members = archive.infolist()
            if len(members) > MOST_INSIDE:
                raise Refusal(f"an archive of {len(members):,} files, the limit is {MOST_INSIDE:,}")
            mine = [
                one for one in members if is_notebook(one.filename, wanted) and "__MACOSX" not in one.filename
            ]
            if len(mine) != 1:
                raise Refusal(f"an archive with {len(mine)} files named {wanted}, expected one")
            return content(archive, mine[0])
    except BROKEN as problem:
        raise Refusal(f"an archive that cannot be read: {problem}") from None


def content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of one plain file of at most MAX_BYTES. Raises Refusal."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Refusal("a link or another thing that is no plain file")
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
    """All of a file, unless it is larger than a notebook may be."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Refusal(f"it has more than {MAX_BYTES // 2**20} MiB: clear all outputs and save again")
    return data
