"""Writes the template repository that GitHub Classroom copies for each student."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from autograder.layout import RELEASE, load_assignment
from autograder.user_error import UserError
from warplab.hardware.packages import extras_in

FILES = Path(__file__).with_name("template")
WORKFLOW = Path(".github", "workflows", "check.yml")
REGRADE = Path(".github", "ISSUE_TEMPLATE", "regrade.yml")
IGNORED = ".ipynb_checkpoints/\n.venv/\n__pycache__/\n"


def write_template(root: Path, names: Sequence[str], folder: Path, package: str) -> list[Path]:
    """Write a template repository with some released sets. Returns its files, relative to the folder.

    package: what pip installs there: a requirement with the extra [student], or the path of a wheel, which is
    copied. The extras that the sets need are added.
    Raises UserError where the folder is not empty, and for a package that is neither.
    """
    if folder.exists() and any(path.name != ".git" for path in folder.iterdir()):
        raise UserError(f"{folder} is not empty; name a new folder, or a clone that holds nothing yet")
    sets = [load_assignment(root, name) for name in names]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        asked = extras_in("\n".join(str(cell["source"]) for one in sets for cell in one.document["cells"]))
        extras = ",".join(("student", *asked))
        requirement = _requirement(package, folder).replace("[student]", f"[{extras}]")
        texts = {
            WORKFLOW: (FILES / "check.yml").read_bytes(),
            REGRADE: (FILES / "regrade.yml").read_bytes(),
            Path("regrade.md"): (FILES / "regrade.md").read_bytes(),
            Path("README.md"): (FILES / "README.md").read_bytes(),
            Path("requirements.txt"): f"{requirement}\n".encode(),
            Path(".gitignore"): IGNORED.encode(),
        }
        for one in sets:
            released = one.path.read_bytes()
            texts |= {Path(place, one.name, one.filename): released for place in ("", RELEASE)}
        for path, data in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
    except OSError as problem:
        raise UserError(f"cannot write to {folder}: {problem.strerror} ({problem.filename})") from None
    return list(texts)


def _requirement(package: str, folder: Path) -> str:
    """The line of requirements.txt that installs the package; copies a wheel into the folder."""
    if package.endswith(".whl") and "://" not in package:
        if not Path(package).is_file():
            raise UserError(f"there is no wheel {package}")
        shutil.copy(package, folder)
        return f"./{Path(package).name}[student]"
    if "[student]" not in package:
        raise UserError(
            f"--package {package} does not name the extra that students need; for example "
            "'warplab[student] @ git+https://github.com/OWNER/COURSE@COMMIT#subdirectory=autograder'"
        )
    return package
