"""Makes a page of the book, or a problem set, into a notebook that runs without a checkout of the course.

The text comes from the rendered page, where citations, registry numbers and terms are resolved, and is
converted to plain Markdown; the cells come from the page's source. The first cell installs the students'
package, which contains the figures.
"""

import copy
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from jinja2 import Template
from markdownify import MarkdownConverter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from workshop.bootstrap import CPU_INDEX

FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
MARK = re.compile(r"\s*@@cell-(\d+)@@\s*")
MATHS = re.compile(r"@@maths-(\d+)@@")
MOVING = "figure.lab, figure.explorable"  # interactive pictures, which need the page's scripts
NOT_TEXT = "script, style, svg, img, .headerlink, button, .explorable-still"
INSTALL = Template(
    """\
# Run this cell first. Where the course's package is installed, it does nothing.
import importlib.metadata
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

needed = {{ needed }}
if shutil.which("nvidia-smi"):  # kernels on a GPU need it
    needed["cuda"] = "{{ nvrtc }}"
here = {one.name for one in importlib.metadata.distributions()}
here |= {name for name in needed.values() if importlib.util.find_spec(name)}
missing = [extra for extra, name in needed.items() if name not in here]
if missing:
    beside = sorted(pathlib.Path().resolve().glob("warplab-*.whl"))
    beside = beside or sorted(pathlib.Path("/kaggle/input").glob("**/warplab-*.whl"))  # read-only there
    {%- if address %}
    wheel = beside[-1].as_uri() if beside else "{{ address }}"
    {%- else %}
    if not beside:
        raise SystemExit(
            "put {{ wheel }}, which comes with this notebook, beside it (in Kaggle: add it as input) "
            "and run this again"
        )
    wheel = beside[-1].as_uri()
    {%- endif %}
    install = [sys.executable, "-m", "pip", "install", "--quiet"]
    # What this kernel has imported (in Colab, NumPy) stays: updated, it would be half old and half new.
    # A half-removed package has no name.
    modules = importlib.metadata.packages_distributions()
    files = {name.partition(".")[0] for name, one in sys.modules.items() if getattr(one, "__file__", None)}
    loaded = {name for module in files & modules.keys() for name in modules[module] if name}
    loaded = {re.sub("[-_.]+", "-", name).lower(): importlib.metadata.version(name) for name in loaded}
    tested = beside[-1].with_name("constraints.txt") if beside else pathlib.Path("constraints.txt")
    if tested.exists():  # the versions that the course was tested with
        lines = [one for one in tested.read_text().splitlines() if one.partition("==")[0] not in loaded]
        chosen = pathlib.Path(tempfile.mkdtemp(), "constraints.txt")
        chosen.write_text("\\n".join(lines))
        install += ["-c", str(chosen)]
    if "torch" in missing and not shutil.which("nvidia-smi"):  # PyTorch's much smaller CPU build
        install += ["--extra-index-url", "{{ index }}"]
    subprocess.run([*install, f"warplab[{','.join(missing)}] @ {wheel}"], check=True)
    importlib.invalidate_caches()
    other = sorted(name for name in loaded if importlib.metadata.version(name) != loaded[name])
    if other:
        raise SystemExit(
            f"installed; {', '.join(other)} had to be updated and is in use: restart the kernel "
            "(Colab: Runtime, Restart session), then run the notebook from the top"
        )
    import _numba_cuda_redirector  # puts numba-cuda in numba.cuda's place, as Python does when it starts
"""
)
NVRTC = "nvidia-cuda-nvrtc"  # the distribution that tells whether the extra `cuda` is installed


def install_cell(wheel: str, folder: str, more: Iterable[str] = ()) -> NotebookNode:
    """The first code cell: installs `wheel` from the notebook's folder, else from the address `folder`.

    more: further extras of the package that the notebook needs.
    """
    source = INSTALL.render(
        wheel=wheel,
        address=urljoin(folder, wheel) if folder else "",
        needed={"notebook": "warplab"} | {extra: NVRTC if extra == "cuda" else extra for extra in more},
        nvrtc=NVRTC,
        index=CPU_INDEX,
    )
    return new_code_cell(source, id="install", metadata={"tags": ["install"]})


def notebook_of(
    cells: list[NotebookNode], page: str, first: list[NotebookNode], address: str = ""
) -> NotebookNode:
    """The page as a notebook without outputs, after the cells of `first`.

    cells: all cells of its source. page: its rendered HTML, in which the container of cell number 12 has the
    class "source-cell-12". address: the page's, "" if it is not known.
    """
    soup = BeautifulSoup(page, "html.parser")
    maths = plain(soup, address)
    made, done = [], 0
    for number, text in pieces(MarkdownOfPage(bullets="-", heading_style="ATX").convert_soup(soup)):
        made += [code(cell) for cell in cells[done:number] if cell.cell_type == "code"]
        done = number
        text = MATHS.sub(lambda found: maths[int(found[1])], text)
        made += [new_markdown_cell(text, id=f"text-{len(made)}")] if text else []
    where = f"[the book]({address})" if address else "the book"
    about = (
        "*A page of “How a GPU Works for Deep Learning” as a notebook: run it from the top. "
        f"Pictures that move are in {where} alone.*"
    )
    about_cell = new_markdown_cell(about, id="about")
    return new_notebook(
        cells=[about_cell, *first, *made],
        metadata={"kernelspec": KERNEL, "language_info": {"name": "python"}},
    )


def plain(soup: BeautifulSoup, address: str) -> list[str]:
    """Reduce the page, in place, to what Markdown can express. Returns its formulas; the text has marks
    `@@maths-0@@` for them, and `@@cell-0@@` for cells.
    """
    for cell in soup.select("[class*=source-cell-]"):
        number = next(name for name in cell["class"] if name.startswith("source-cell-")).rpartition("-")[2]
        cell.replace_with(paragraph(soup, f"@@cell-{number}@@"))
    for summary in soup.select("details.solution > summary"):  # it folds cells, which Markdown cannot
        summary.find_parent().unwrap()  # pyright: ignore[reportOptionalMemberAccess] - selected as a child
        summary.replace_with(paragraph(soup, "Solution"))
    for figure in soup.select(MOVING):
        question = figure.select_one(".lab-question, .explorable-question")
        asked = question.get_text(" ", strip=True) if question else ""
        figure.replace_with(paragraph(soup, f"(In the book a picture moves here: {asked})"))
    for useless in soup.select(NOT_TEXT):
        useless.decompose()
    for number in soup.select(".footnote-reference"):
        number.replace_with(f"[{number.get_text()}]")
    for link in soup.find_all("a"):
        target = str(link.get("href", ""))
        if "://" not in target:
            link["href"] = urljoin(address, target)
            if not address:
                link.unwrap()
    maths = []
    for formula in soup.select("span.math, div.math"):
        source = formula.get_text().strip()
        inner = source.removeprefix(r"\(").removesuffix(r"\)").removeprefix(r"\[").removesuffix(r"\]").strip()
        maths.append(f"${inner}$" if formula.name == "span" else f"$$\n{inner}\n$$")
        formula.replace_with(f"@@maths-{len(maths) - 1}@@")
    return maths


def paragraph(soup: BeautifulSoup, text: str) -> Tag:
    return soup.new_tag("p", string=text)


def pieces(text: str) -> list[tuple[int | None, str]]:
    """Split the text at the cells' marks: (number of the cell after it, text); None after the last."""
    parts = MARK.split(text)
    numbers = [*map(int, parts[1::2]), None]
    return [(number, part.strip()) for part, number in zip(parts[::2], numbers, strict=True)]


def code(cell: NotebookNode) -> NotebookNode:
    """A code cell of the source; hidden ones are folded, those that need the workshop replaced by a note."""
    if cell.source.startswith("from workshop import"):
        return new_markdown_cell("(Here the book shows what only the course's own repository can make.)")
    tags = cell.metadata.get("tags", [])
    hidden = {"remove-cell", "remove-input", "hide-input", "hide-cell"} & set(tags)
    return new_code_cell(cell.source, metadata={"tags": list(tags), **(FOLDED if hidden else {})})


_Converter: Any = MarkdownConverter  # its stub lacks most of its methods


class MarkdownOfPage(_Converter):
    """Converts HTML to Markdown that JupyterLab and Colab render."""

    def escape(self, text, parent_tags):
        return super().escape(text, parent_tags).replace("$", r"\$")

    def convert_div(self, el, text, parent_tags):
        if "admonition" not in (el.get("class") or []):
            return f"\n\n{text.strip()}\n\n" if text.strip() else ""
        return self.convert_blockquote(el, text, parent_tags)

    def convert_p(self, el, text, parent_tags):
        text = f"**{text.strip()}**" if "admonition-title" in (el.get("class") or []) else text
        return super().convert_p(el, text, parent_tags)

    def convert_details(self, el, text, parent_tags):
        return f"\n\n<details>{text.strip()}\n\n</details>\n\n"

    def convert_summary(self, el, text, parent_tags):
        return f"<summary>{text.strip()}</summary>\n\n"


def files_cell(files: dict[str, str]) -> NotebookNode:
    """A folded cell that writes {path: text} if they do not exist: the files that a page reads."""
    source = ["# Files that this page reads.", "import pathlib", ""]
    for name, text in files.items():
        source += [f"path = pathlib.Path({name!r})", "path.parent.mkdir(exist_ok=True)"]
        source += ["if not path.exists():", f"    path.write_text({text!r})"]
    return new_code_cell("\n".join(source), id="files", metadata=FOLDED)


def with_install(document: NotebookNode, install: NotebookNode) -> NotebookNode:
    """A copy of a problem set with `install` as its first cell."""
    made = copy.deepcopy(document)
    made.cells.insert(0, install)
    return made


def build_wheel(root: Path, folder: Path) -> Path:
    """Build the students' wheel into `folder`, from a copy of the checkout so that that stays clean."""
    with tempfile.TemporaryDirectory() as place:
        made = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*", "tests", "workshop")
        copied = shutil.copytree(root / "autograder", Path(place) / "autograder", ignore=made)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        done = subprocess.run(
            [*build, "--wheel-dir", place, copied], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the students' wheel was not built: {done.stderr.strip()[-500:]}")
        built = next(Path(place).glob("*.whl"))
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(built, folder))
