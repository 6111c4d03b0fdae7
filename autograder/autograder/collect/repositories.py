"""Students' git repositories, read without a working tree: one file out of one commit.

So nothing in a repository runs or is followed: no hook, filter (such as Git LFS), submodule or symbolic link.
A commit's date is set by its author's machine; only the server knows when a commit arrived. Where the minute
matters, the list should have the columns `commit` and `time`, from the server's log of pushes.
"""

import contextlib
import os
import re
import resource
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from autograder.collect.handed_in import HandedIn, Owner, Refusal, unfit
from autograder.csv_tables import read_rows
from autograder.layout import Assignment
from autograder.reader.contents import shown
from autograder.receipt import utc
from autograder.user_error import UserError
from autograder.validate.validate import MAX_BYTES

SECONDS = 120  # time limit of one git command
LARGEST, MEMORY = 256 * 2**20, 4 * 2**30  # bytes of one file that git writes, bytes of its memory
COMMIT = re.compile(r"[0-9a-f]{7,64}")
PROTOCOLS = ("https", "ssh", "file")
CLASSROOM = ("github_username", "student_repository_url")
LFS = b"version https://git-lfs"
SETTINGS = {  # each turns off something that a repository or a server could make git do
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "credential.helper": "",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}


def in_repositories(
    listed: Path, assignment: Assignment, protocol: str, deadline: datetime | None
) -> Iterator[HandedIn]:
    """Yield the notebooks and requests in the repositories that a CSV file lists (format: rows_of())."""
    for owner, address, commit, received in _listed(listed, protocol):
        student = owner.student
        try:
            if unfit(student):
                raise Refusal(unfit(student))
            data, request, note = from_repository(address, assignment, protocol, commit, deadline)
            yield HandedIn(owner, address, partial(bytes, data), received=received, note=note)
            if request:
                yield HandedIn(owner, f"{address}: regrade.md", partial(bytes, request), asks=True)
        except Refusal as problem:
            yield HandedIn(owner, address, refused=str(problem))


def rows_of(file: Path, protocol: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, {student, repository, perhaps login, commit and time}) from a list of repositories.

    The file has these columns, or is the table of grades that GitHub Classroom offers. Classroom's https
    addresses become ssh ones if that is the protocol, as its repositories are private.
    """
    wanted = "that names the columns student and repository, or is GitHub Classroom's table of grades"
    for line, row in read_rows(file, ("student", "repository"), CLASSROOM, wanted=wanted):
        if "repository" in row:
            yield line, row
            continue
        login, address = row["github_username"], row["student_repository_url"]
        if protocol == "ssh":
            address = re.sub("^https://github.com/", "ssh://git@github.com/", address)
        whose = {"student": row.get("roster_identifier") or login, "login": login, "repository": address}
        yield line, whose | {"time": row.get("submission_timestamp", "")}


def _listed(file: Path, protocol: str) -> list[tuple[Owner, str, str, datetime | None]]:
    found: list[tuple[Owner, str, str, datetime | None]] = []
    for line, row in rows_of(file, protocol):
        commit, time = row.get("commit", ""), row.get("time", "")
        received = utc(time) if time else None
        if time and received is None or commit and not COMMIT.fullmatch(commit):
            raise UserError(
                f"{file}, line {line}: expected a time such as 2026-03-02T10:00:00Z and a "
                "commit of hexadecimal digits, or nothing there"
            )
        owner = Owner(student=row["student"], name=row.get("login", ""))
        found.append((owner, row["repository"], commit, received))
    return found


def from_repository(
    address: str, assignment: Assignment, protocol: str, commit: str, deadline: datetime | None
) -> tuple[bytes, bytes, str]:
    """(the notebook, the request for a regrade or b"", a note on which commit was read). Raises Refusal.

    commit: "" for the latest one, or the last one dated before the deadline if there is one.
    """
    if protocol != "file" and not address.startswith(f"{protocol}://"):
        raise Refusal(f"its address does not begin with {protocol}://; --protocol says which are fetched")
    with tempfile.TemporaryDirectory(prefix="collect-") as folder:
        whole = ["--depth=1"] if not commit and deadline is None and protocol != "file" else []
        options = ["--bare", "--single-branch", "--no-tags", "--template=", *whole]
        git(folder, protocol, "clone", "--quiet", *options, "--", address, f"{folder}/r")
        asked = partial(git, f"{folder}/r", protocol)
        if commit:
            how = f"commit {commit[:10]}, as the list says"
        elif deadline is None:
            commit, how = "HEAD", "the latest commit"
        else:
            until = deadline.replace(tzinfo=UTC).isoformat()
            commit = asked("rev-list", "-1", f"--before={until}", "HEAD").decode().strip()
            if not commit:
                raise Refusal("no commit is dated before the deadline")
            how = f"commit {commit[:10]}: the last by its own date, which is the student's word"
        for path in (
            f"{assignment.name}/{assignment.filename}",
            assignment.filename,
            f"exercises/{assignment.name}/{assignment.filename}",
        ):
            listed = partial(asked, "ls-tree", "-l", "--end-of-options", commit, "--")
            if entry := listed(path).decode("utf-8", "replace").split():
                request = listed(f"{assignment.name}/regrade.md").decode("utf-8", "replace").split()
                return _blob(asked, entry), _blob(asked, request) if request else b"", how
        raise Refusal(f"no {assignment.name}/{assignment.filename} in {how}")


def _blob(asked: Callable[..., bytes], entry: list[str]) -> bytes:
    """The bytes of the file that an entry of `git ls-tree -l` names. Raises Refusal."""
    mode, kind, name, size = entry[:4]
    if kind != "blob" or mode == "120000":
        raise Refusal("a link, a folder or another repository in the notebook's place")
    if int(size) > MAX_BYTES:
        raise Refusal(f"it has more than {MAX_BYTES // 2**20} MiB: clear all outputs and save again")
    data = asked("cat-file", "blob", name)
    if data.startswith(LFS):
        raise Refusal("it is kept in Git LFS, which is not fetched: commit the notebook itself")
    return data


def git(folder: str, protocol: str, *words: str) -> bytes:
    """Run one git command with limits and without any configuration file. Returns its output.

    protocol: the only one that is allowed. Raises Refusal with git's last line of error.
    """
    settings = [text for name, value in SETTINGS.items() for text in ("-c", f"{name}={value}")]
    command = ["git", "-C", folder, *settings, "-c", f"protocol.{protocol}.allow=always", *words]
    kept = {
        name: os.environ[name] for name in ("PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE") if name in os.environ
    }
    alone = {
        "HOME": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oForwardAgent=no -oClearAllForwardings=yes",
        "LC_ALL": "C",
    }
    process = subprocess.Popen(
        command,
        env=kept | alone,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_limit,
    )
    try:
        out, error = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Refusal(f"git took longer than {SECONDS} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        told = error.decode("utf-8", "replace").strip().splitlines() or [f"status {process.returncode}"]
        raise Refusal(f"git: {shown(told[-1], 200)}")  # the text may come from a student's own server
    return out


def _limit() -> None:
    """Runs in the child before git: limits file size, memory and processor time."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
