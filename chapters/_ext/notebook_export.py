"""Exports every page with code, and every problem set, as a stand-alone notebook: _build/html/notebooks/.

    {notebook}`ps01`      a link to that problem set's notebook
    {notebook}`all`       a link to the archive of everything

The folder also has the students' wheel, which the first cell of each notebook installs, and an archive of
everything. The theme's download button offers a page's notebook. If _config.yml names a repository, a button
opens it in Colab from the branch `notebooks`, where book.yml puts this folder.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import nbformat
from docutils import nodes
from myst_nb.core.read import read_myst_markdown_notebook

from warplab.hardware.packages import extras_in
from workshop import elsewhere

FOLDER = "notebooks"
BRANCH = "notebooks"
ALL = "how-a-gpu-works-notebooks.zip"
WHEEL = f"warplab-{version('warplab')}-py3-none-any.whl"
EARLY, LATE = 100, 502  # priorities: before extensions change the HTML; after the theme has made its buttons


def mark_cells(app, doctree, docname) -> None:
    """Mark each cell's container in the page with the number of the cell in the source."""
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            cell["classes"].append(f"source-cell-{cell['cell_index']}")


def address_of(app, path: str) -> str:
    return urljoin(app.config.html_baseurl, path) if app.config.html_baseurl else ""


def install(app, more: Iterable[str]):
    return elsewhere.install_cell(WHEEL, address_of(app, f"{FOLDER}/"), more)


def export(app, pagename, templatename, context, doctree) -> None:
    """Write the notebook of a page with code, and add it to the theme's download button."""
    source = Path(app.env.doc2path(pagename)) if doctree is not None else None
    if source is None or source.suffix != ".md":
        return
    text = source.read_text(encoding="utf-8")
    cells = read_myst_markdown_notebook(text, add_source_map=False, path=str(source)).cells
    if not any(cell.cell_type == "code" for cell in cells):
        return
    page = address_of(app, f"{pagename}.html")
    imports_triton = re.search(r"^import triton\b", text, re.MULTILINE)
    first = [
        install(app, ["torch", "cuda", *(["triton"] if imports_triton else [])]),
        *([elsewhere.files_cell(files)] if (files := read_by(text, source.parent)) else []),
    ]
    made = elsewhere.notebook_of(cells, context["body"], first, page)
    name = f"{source.stem}.ipynb"
    write(app, name, made)
    context["ipynb_source"] = f"../{FOLDER}/{name}"


def read_by(text: str, folder: Path) -> dict[str, str]:
    """{path: text} of the files in chapters/cluster that a page's text names or imports."""
    named = re.findall(r"cluster/[\w-]+\.\w+", text)
    named += [f"cluster/{name}.py" for name in re.findall(r"from cluster import (\w+)", text)]
    return {name: (folder / name).read_text(encoding="utf-8") for name in dict.fromkeys(named)}


def write(app, name: str, notebook) -> None:
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    nbformat.validate(notebook)
    (folder / name).write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def colab(app, pagename, templatename, context, doctree) -> None:
    """Add a button that opens the page's notebook in Colab, if a repository on GitHub is known."""
    place = urlsplit((app.config.html_theme_options or {}).get("repository_url", ""))
    if context.get("ipynb_source") and place.hostname == "github.com":
        name = Path(context["ipynb_source"]).name
        url = f"https://colab.research.google.com/github/{place.path.strip('/')}/blob/{BRANCH}/{name}"
        context["header_buttons"].append(
            {
                "type": "link",
                "url": url,
                "tooltip": "Run this page in Colab",
                "icon": "fas fa-rocket",
                "text": "Colab",
                "label": "colab-button",
            }
        )


def exercise(app, name: str) -> Path | None:
    return next(iter(sorted((Path(app.srcdir) / "exercises" / name).glob("*.ipynb"))), None)


def link_to_set(name, rawtext, text, lineno, inliner, options=None, content=None):
    """The role {notebook}."""
    app = inliner.document.settings.env.app
    found = Path(ALL) if text == "all" else exercise(app, text)
    if found is None:
        told = inliner.reporter.error(f"notebook: exercises/ has no problem set '{text}'", line=lineno)
        return [inliner.problematic(rawtext, rawtext, told)], [told]
    depth = inliner.document.settings.env.docname.count("/")
    target = f"{'../' * depth}{FOLDER}/{found.name}"
    return [nodes.reference(rawtext, found.name, refuri=target, internal=True)], []


def finish(app, exception) -> None:
    """Write the problem sets, the wheel, and the archive of everything."""
    root, folder = Path(app.srcdir), Path(app.outdir) / FOLDER
    if exception is not None or app.builder.format != "html" or not (root / "autograder").is_dir():
        return
    for path in sorted(root.glob("exercises/ps*/*.ipynb")):
        document = nbformat.read(path, 4)
        more = extras_in("\n".join(cell.source for cell in document.cells if cell.cell_type == "code"))
        write(app, path.name, elsewhere.with_install(document, install(app, more)))
    elsewhere.build_wheel(root, folder)
    shutil.copy(root / "autograder/constraints.txt", folder)
    with zipfile.ZipFile(folder / ALL, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            if path.name != ALL:
                archive.write(path, path.name)


def setup(app) -> dict:
    app.add_role("notebook", link_to_set)
    app.connect("doctree-resolved", mark_cells)
    app.connect("html-page-context", export, priority=EARLY)
    app.connect("html-page-context", colab, priority=LATE)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
