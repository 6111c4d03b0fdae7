"""Writes nbgrader's source notebooks and has nbgrader make the students' notebooks from them.

Or checks that both are up to date.
"""

import hashlib
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder import layout
from autograder.release.source import source_notebook, stable_json
from autograder.results import write_atomic
from autograder.user_error import UserError, nearest


@dataclass(frozen=True)
class Released:
    """One student notebook: where it is and whether this run changed it ("written", "unchanged", "drift")."""

    name: str
    path: Path
    state: str


def release(root: str | Path, names: Sequence[str] = (), *, check: bool = False) -> list[Released]:
    """Release the problem sets `names` (default: all in solutions/). Returns a list of Released, in order.

    check: write nothing, report "drift" where exercises/ differs from what solutions/ would give.
    Raises UserError for an unknown name or a solution notebook that cannot be converted.
    """
    root = Path(root)
    solutions = solution_files(root)
    unknown = [name for name in names if name not in solutions]
    if unknown:
        folder, hint = root / layout.SOLUTIONS, nearest(unknown[0], solutions)
        raise UserError(f'no solution notebook for "{unknown[0]}" in {folder}{hint}')
    done: list[Released] = []
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        for name in sorted(names) or sorted(solutions):
            source = stable_json(source_notebook(solutions[name]))
            notebook = f"{solutions[name].stem}.ipynb"
            student = student_bytes(root, name, notebook, source, Path(scratch))
            if not check:
                write_source(root / layout.SOURCE / name / notebook, source, solutions[name])
            target = root / layout.RELEASE / name / notebook
            same = target.exists() and target.read_bytes() == student
            strays = [path for path in target.parent.glob("*.ipynb") if path != target]
            if not check:
                _write(target, student)
                for path in strays:
                    path.unlink()
            state = "unchanged" if same and not strays else "drift" if check else "written"
            done.append(Released(name, target, state))
    return done


def solution_files(root: str | Path) -> dict[str, Path]:
    """{"ps04": Path(".../solutions/ps04_matmul.py"), ...}.

    Raises UserError if there is none, or two for one set.
    """
    found: dict[str, Path] = {}
    for path in sorted((Path(root) / layout.SOLUTIONS).glob("ps[0-9]*_*.py")):
        name = path.stem.split("_")[0]
        if name in found:
            raise UserError(
                f"{path} and {found[name].name} both claim {name}; keep one solution notebook for each set"
            )
        found[name] = path
    if not found:
        raise UserError(f"no solution notebooks (psXX_name.py) in {Path(root) / layout.SOLUTIONS}")
    return found


def student_bytes(root: Path, name: str, notebook: str, source: bytes, scratch: Path) -> bytes:
    """The bytes of the student's notebook, made by nbgrader's generate_assignment with nbgrader_config.py.

    source: the source notebook's bytes. notebook: its file name. scratch: a folder for nbgrader to work in.
    """
    from nbgrader.converters import GenerateAssignment, NbGraderException
    from nbgrader.coursedir import CourseDirectory

    config = nbgrader_config(root)
    config.CourseDirectory.root = str(scratch)
    config.CourseDirectory.source_directory = "source"
    config.CourseDirectory.release_directory = "release"
    config.CourseDirectory.db_url = "sqlite://"
    config.SaveCells.enabled = False
    _write(scratch / "source" / name / notebook, source)
    quiet = logging.getLogger("autograder.nbgrader")
    quiet.setLevel(logging.CRITICAL)
    courses = CourseDirectory(config=config, assignment_id=name, log=quiet)
    converter = GenerateAssignment(coursedir=courses, config=config, force=True, no_database=True, log=quiet)
    try:
        converter.start()
    except NbGraderException as problem:
        raise UserError(f"nbgrader could not release {name}: {problem}") from None
    return (scratch / "release" / name / notebook).read_bytes()


def nbgrader_config(root: str | Path) -> Config:
    """The course's nbgrader_config.py, loaded by traitlets."""
    return PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()


def write_source(path: Path, data: bytes, solution: Path) -> None:
    """Write nbgrader's source notebook. Raises UserError if somebody has edited it, as formgrader offers.

    _build/.stamps/ holds the hash of what was last written; beside the notebook nbgrader would release it.
    """
    stamp = path.parents[2] / ".stamps" / f"{path.stem}.sha256"
    edited = path.exists() and stamp.exists() and _digest(path.read_bytes()) != stamp.read_text().strip()
    if edited and path.read_bytes() != data:
        raise UserError(
            f"{path} was edited after it was generated, and edits there are not read; make the same edit in "
            f"{solution.name}, delete the notebook, and run again"
        )
    _write(path, data)
    _write(stamp, f"{_digest(data)}\n".encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, data: bytes) -> None:
    """Replace a file atomically, and only if its contents change."""
    if not path.exists() or path.read_bytes() != data:
        write_atomic(path, data)
