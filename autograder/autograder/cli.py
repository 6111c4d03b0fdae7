"""The command line. The commands are in commands/; `autograder --help` lists them.

Exit status: 0 success, 1 the command worked and its answer is no (exercises out of date, malformed notebook),
2 the command could not be done, 130 stopped by Ctrl-C.
"""

import errno
import sys

import typer

from autograder.commands import after_hand_in, grading_a_class, own_notebooks, passing_back, preparing
from autograder.user_error import UserError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Release, check and grade the problem sets of the course.",
)
# errors of a folder or disk that cannot be written to: the user's to put right, so no traceback
CANNOT_WRITE = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOENT, errno.ELOOP, errno.EINVAL),
}
for group in (own_notebooks, preparing, grading_a_class, after_hand_in, passing_back):
    app.add_typer(group.commands)


def main() -> None:
    """Entry point."""
    run(app, "autograder")


def run(app: typer.Typer, program: str) -> None:
    """Run `app`; every UserError is one line on stderr, never a traceback. program: its name in that line."""
    try:
        app()
        return
    except UserError as problem:
        told, status = str(problem), problem.status
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT)  # on a full disk the error names no file
        where = problem.filename2 or problem.filename or ("a file" if full else None)
        if problem.errno not in CANNOT_WRITE or where is None:
            raise
        told = f"cannot use {where}: {problem.strerror}; put that right, or name another place"
        status = 2
    except RuntimeError as problem:
        # `import warplab` itself may raise DeviceError, so the class is recognised by its module's name
        if type(problem).__module__ != "warplab.hardware.device":
            raise
        told, status = str(problem), 2
    print(f"{program}: {told}", file=sys.stderr)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
