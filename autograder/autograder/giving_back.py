"""`autograder give-back`: deliver the feedback pages of a set to the students.

Canvas (app/models/assignment.rb, infer_comment_context_from_filename): "Upload Submissions" takes an archive
whose files have the names of the downloaded ones, NAME_USER_UPLOAD_..., and attaches each to that upload as a
comment.
Moodle (mod/assign/feedback/file/importziplib.php): "Upload multiple feedback files in a zip" takes folders
NAME_NUMBER_assignfeedback_file.
"""

import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from autograder.collect.handed_in import Refusal
from autograder.collect.intake import read_places
from autograder.collect.platforms import CANVAS
from autograder.collect.repositories import git, rows_of
from autograder.csv_tables import guard
from autograder.layout import Assignment
from autograder.report.page import Pages
from autograder.results import Results, key_of, secret_seed, write_atomic, write_rows
from autograder.user_error import UserError

BRANCH = "feedback"
AUTHOR = ("-c", "user.name=Feedback", "-c", "user.email=feedback@localhost")
MOODLE = re.compile(r"([^/]+?_\d+)_assignsubmission_file")
Sent = Iterator[tuple[str, str]]
"""(student, why the page could not be given back, or "")."""


def pages_of(assignment: Assignment, out: Path) -> dict[str, bytes]:
    """{student: HTML of the feedback page}. Raises UserError where there is none."""
    files = {one: Pages(out, assignment).feedback(one) for one in Results(out, assignment.name).all()}
    found = {student: file.read_bytes() for student, file in files.items() if file.exists()}
    if not found:
        run = f"run `autograder grade {assignment.name}`"
        raise UserError(f"no feedback of {assignment.name} in {out}; {run}")
    return found


def for_canvas(place: str) -> str:
    """A page's prefix in Canvas's archive, from the place of the notebook; "" if that is not from Canvas."""
    found = CANVAS.fullmatch(place.split("/")[-1])
    return place.split("/")[-1][: found.start("file")] if found else ""


def for_moodle(place: str) -> str:
    """The same for Moodle's archive."""
    found = MOODLE.search(place)
    return f"{found[1]}_assignfeedback_file/" if found else ""


ARCHIVES = {"canvas": for_canvas, "moodle": for_moodle}


def archive(
    assignment: Assignment, out: Path, submissions: Path, name: Callable[[str], str], file: Path
) -> Sent:
    """Write one zip `file` for a learning platform. name: for_canvas or for_moodle.

    Raises UserError where no collected file came from that platform.
    """
    listed = submissions / f"{assignment.name}.places.csv"
    found = ((student, name(place.split(".zip/")[0])) for place, student in read_places(listed).items())
    where = {student: prefix for student, prefix in found if prefix}  # the last line is the newest
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for student, page in pages_of(assignment, out).items():
            prefix = where.get(guard(student), "")
            if prefix:
                packed.writestr(f"{prefix}{assignment.notebook}.html", page)
            yield student, "" if prefix else "no file that came from there bears this student's name"
    if not packed.namelist():
        raise UserError(
            f"no file in {listed} came from there, so nothing is written; collect its archive first"
        )
    write_atomic(file, data.getvalue())


def folder(assignment: Assignment, out: Path, to: Path) -> Sent:
    """Write a folder for a web server, each page at an address that cannot be guessed.

    Which address is whose goes into OUT/<set>.addresses.csv. The addresses are hashes with the secret seed
    of the grades folder, so that a page keeps its address in later runs.
    """
    addresses = [("student", "address")]
    for student, page in pages_of(assignment, out).items():
        secret = key_of("page", secret_seed(out), student)[:32]
        write_atomic(to / secret / f"{assignment.notebook}.html", page)
        addresses.append((guard(student), f"{secret}/{assignment.notebook}.html"))
        yield student, ""
    write_atomic(to / "index.html", b"")  # keeps a server from listing the folder
    write_rows(out / f"{assignment.name}.addresses.csv", addresses)


def repositories(assignment: Assignment, out: Path, submissions: Path, listed: Path, protocol: str) -> Sent:
    """Push each page to the branch `feedback` of its student's repository.

    listed: CSV file of repositories in the format of `collect`. protocol: one of repositories.PROTOCOLS.
    """
    pages, path = pages_of(assignment, out), f"{assignment.name}/{assignment.notebook}.html"
    came = read_places(submissions / f"{assignment.name}.places.csv")
    for _, row in rows_of(listed, protocol):
        names = row["student"], row.get("login", ""), came.get(guard(row["repository"]), "")
        if student := next((name for name in names if name in pages), ""):
            try:
                push(row["repository"], protocol, path, pages.pop(student))
                yield student, ""
            except Refusal as problem:
                yield student, str(problem)
    for student in pages:
        yield student, f"not in {listed}"


def push(address: str, protocol: str, path: str, page: bytes) -> None:
    """Commit one file on top of the branch and push it, without a working tree. Raises Refusal."""
    with tempfile.TemporaryDirectory(prefix="give-back-") as scratch:
        Path(scratch, "page").write_bytes(page)

        def run(*words: str) -> str:
            return git(f"{scratch}/r", protocol, *words).decode().strip()

        git(scratch, protocol, "init", "--quiet", "--bare", "--template=", f"{scratch}/r")
        there = run("ls-remote", "--", address, f"refs/heads/{BRANCH}")
        if there:
            run("fetch", "--quiet", "--depth=1", "--", address, f"refs/heads/{BRANCH}")
            run("read-tree", "FETCH_HEAD")
        blob = run("hash-object", "-w", "--", f"{scratch}/page")
        run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree, parent = run("write-tree"), ["-p", there.split()[0]] if there else []
        if there and tree == run("rev-parse", "FETCH_HEAD^{tree}"):
            return
        commit = run(*AUTHOR, "commit-tree", "-m", f"Feedback on {path.split('/')[0]}", *parent, tree)
        run("push", "--quiet", "--", address, f"{commit}:refs/heads/{BRANCH}")
