"""Builds the book with Jupyter Book 1.x, and refuses an incomplete build.

Jupyter Book can exit with 0 and no book: 2.x writes no HTML from this tree, and an incremental build does not
repeat the warnings of pages that it did not read again. So a build succeeds only if the version is right,
there is no warning, no cell failed and every page of _toc.yml exists. After a failure the next build reads
every page again.
"""

import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor

from autograder.user_error import UserError

# What the output of a cell depends on besides the cell itself: if any of it changes, all cells run again.
CODE = (
    "autograder/warplab",
    "autograder/workshop",
    "autograder/constraints.txt",
    "chapters/_ext",
    "requirements.txt",
)
PROSE = ("chapters", "_config.yml", "_toc.yml")
# Lines of the log that show progress: the page whose cells run, and what Sphinx does.
PROGRESS = re.compile(
    r"Executing: (\S+)|(\S+): Executing notebook using|^(reading sources|writing output)\.\.\. \["
)


class BookError(UserError):
    """The book was not built; the message names the page and the reason."""


def pages(root: Path) -> list[str]:
    """Every page of _toc.yml, without its extension, in reading order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    chapters = toc.get("chapters", []) + [
        chapter for part in toc.get("parts", []) for chapter in part["chapters"]
    ]
    return [toc["root"], *(chapter["file"] for chapter in chapters)]


def check_version(found: str | None = None) -> None:
    """Raise BookError unless Jupyter Book is 1.x. found: its version (default: the installed one)."""
    found = found or version("jupyter-book")
    if not found.startswith("1."):
        raise BookError(
            f"found jupyter-book {found}, but the book needs 1.x (2.x writes no HTML here); run `make venv`"
        )


def missing_pages(root: Path) -> list[str]:
    """Pages that _toc.yml names and `_build/html` lacks; "index" is the redirecting start page."""
    html = root / "_build" / "html"
    return [page for page in ["index", *pages(root)] if not (html / f"{page}.html").is_file()]


def complaints(log: str) -> list[str]:
    """The lines of a build log that need action: warnings, errors and the reasons of failed cells."""
    lines = [line.strip() for line in log.splitlines()]
    found = [
        line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|^[\w.]*(Error|Exception): ", line)
    ]
    found = [line for line in found if not line.startswith("[IPKernelApp]")]
    return list(dict.fromkeys(found))


def run_cells(root: Path) -> None:
    """Run the cells of pages that are not in the cache, several pages in parallel.

    Sphinx would run one page after another; it runs pages that fail here again, and reports why. The pages
    with most cells come first, so that a long one does not run alone at the end.
    """
    cache = get_cache(str(root / "_build" / ".jupyter_cache"))
    texts = {root / f"{page}.md": (root / f"{page}.md").read_text(encoding="utf-8") for page in pages(root)}
    for file in sorted(texts, key=lambda file: -texts[file].count("{code-cell}")):
        if "{code-cell}" in texts[file]:
            cache.add_nb_to_project(str(file), read_data={"name": "myst_nb_md", "type": "plugin"})
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    logger = logging.getLogger("cells")
    logger.setLevel(logging.INFO)  # it names each page
    load_executor("local-parallel", cache, logger).run_and_cache(timeout=config["execute"]["timeout"])


def followed(arguments: Sequence[str], root: Path, say) -> tuple[int, str]:
    """Run Python in `root`, print its progress, and return (exit code, log without colours)."""
    lines, last = [], None
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout
        for raw in process.stdout:
            line = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", raw)
            lines.append(line)
            for found in PROGRESS.finditer(line):
                page = found[1] or found[2]
                note = f"running the cells of {Path(page).name}" if page else found[3]
                if note != last:
                    say(f"    {note}")
                    last = note
    return process.returncode, "".join(lines)


def build(root: Path, code_changed: bool, say=print) -> None:
    """Build `_build/html` from the tree at `root`.

    code_changed: something in CODE differs from the last good build, so that stored cell outputs are dropped.
    Raises BookError with at most twelve lines of complaints; the whole log is in `_build/book.log`.
    """
    check_version()
    made = root / "_build"
    made.mkdir(exist_ok=True)
    if code_changed:
        shutil.rmtree(made / ".jupyter_cache", ignore_errors=True)
        shutil.rmtree(made / "jupyter_execute", ignore_errors=True)
    shutil.rmtree(made / "html" / "reports", ignore_errors=True)
    every_page = code_changed or bool(missing_pages(root))
    _, ran = followed(["-m", "workshop.book", str(root)], root, say)
    book = ["-c", "from jupyter_book.cli.main import main; main()", "build", ".", "--path-output", "."]
    book += ["-W", "-n", "--keep-going"] + (["--all"] if every_page else [])
    code, log = followed(book, root, say)
    (made / "book.log").write_text(ran + log, encoding="utf-8")
    failed_cells = sorted(path.stem for path in (made / "html" / "reports").rglob("*.log"))
    missing = missing_pages(root)
    if code == 0 and not failed_cells and not missing:
        return
    shutil.rmtree(made / ".doctrees", ignore_errors=True)
    reasons = complaints(log)[:12] or log.splitlines()[-5:]
    reasons += [f"a cell of {page} failed: _build/html/reports" for page in failed_cells]
    reasons += [f"_build/html/{page}.html was not written" for page in missing[:3]]
    raise BookError("the book was not built (whole log: _build/book.log)\n  " + "\n  ".join(reasons))


if __name__ == "__main__":
    run_cells(Path(sys.argv[1]))
