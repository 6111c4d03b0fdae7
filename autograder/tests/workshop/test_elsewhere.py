"""Pages and problem sets as notebooks that run where only the students' package is."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version

import nbformat
import pytest
from conftest import ROOT
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.layout import load_assignment
from autograder.validate import check_file
from workshop import elsewhere

PAGE = """<article><section id="costs"><h1>5. Costs<a class="headerlink" href="#costs">#</a></h1>
<p>A card costs $2 an hour, its door is <a class="spec" href="specs.html#x">3.35 TB/s</a> wide
<span id="id1">[<a href="references.html#id7">Boehm, 2022</a>]</span>, and 2 * 3 * 4 is 24.<a
class="footnote-reference" href="#note" id="id2" title="Of this card."><sup>1</sup></a></p>
<div class="cell source-cell-1 docutils container"><div class="cell_output"><svg></svg></div></div>
<p>So <span class="math notranslate nohighlight">\\(a_1 * b_2\\)</span> is</p>
<div class="math notranslate nohighlight">\\[x_{ij} = \\$3\\]</div>
<figure class="explorable" id="explorable-ring"><p class="explorable-question">What does a ring cost?</p>
<div class="explorable-still"><svg></svg></div></figure>
<div class="admonition warning"><p class="admonition-title">Careful</p><p>First.</p>
<ul><li>second</li></ul></div>
<details class="sd-dropdown"><summary>Answer<svg></svg></summary><div><p>Four.</p></div></details>
<details class="solution"><summary>Solution</summary><p>Two.</p>
<div class="cell source-cell-4 docutils container"><pre>shown()</pre></div><p>So.</p></details>
<aside class="footnote" id="note"><span>[<a href="#id2">1</a>]</span><p>Of this card.</p></aside>
<table><thead><tr><th>GPU</th><th>GB</th></tr></thead><tbody><tr><td>T4</td><td>16</td></tr></tbody></table>
</section></article>"""
CELLS = [
    new_code_cell("import hidden", metadata={"tags": ["remove-cell"]}),
    new_code_cell("drawn()", metadata={"tags": ["remove-input"]}),
    new_markdown_cell("text"),
    new_code_cell("also_hidden()", metadata={"tags": ["remove-cell"]}),
    new_code_cell("shown()"),
]


def made(address=""):
    return elsewhere.notebook_of(CELLS, PAGE, [elsewhere.install_cell("w.whl", "")], address).cells


def test_every_cell_of_the_source_stands_once_and_in_order_and_what_the_book_hides_is_folded():
    code = [cell for cell in made() if cell.cell_type == "code"][1:]
    assert [cell.source for cell in code] == ["import hidden", "drawn()", "also_hidden()", "shown()"]
    assert [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in code] == [True] * 3 + [
        False
    ]


def test_the_text_is_plain_markdown_and_only_formulas_keep_a_bare_dollar():
    text = "\n\n".join(cell.source for cell in made() if cell.cell_type == "markdown")
    assert "# 5. Costs\n" in text and r"costs \$2 an hour" in text and "3.35 TB/s wide" in text
    assert "[Boehm, 2022]" in text and r"2 \* 3 \* 4 is 24.[1]" in text and "[1]\n\nOf this card." in text
    assert "$a_1 * b_2$" in text and "$$\nx_{ij} = \\$3\n$$" in text
    assert "> **Careful**\n>\n> First.\n>\n> - second" in text
    assert "<details><summary>Answer</summary>\n\nFour.\n\n</details>" in text
    assert "Solution\n\nTwo." in text and text.count("<details>") == text.count("</details>") == 1
    assert "| T4 | 16 |" in text and "(In the book a picture moves here: What does a ring cost?)" in text
    assert not re.search(r"@@|<svg|<div|headerlink|\]\(specs", text)


def test_where_the_books_address_is_known_links_lead_to_it():
    text = "\n\n".join(cell.source for cell in made("https://book.example/chapters/05-costs.html"))
    assert "[3.35 TB/s](https://book.example/chapters/specs.html#x)" in text


def run(source, folder):
    """The install cell in a process that finds no warplab, whose pip writes down what it is asked."""
    hide = "import importlib.metadata, importlib.util, shutil, subprocess\n"
    hide += "importlib.metadata.distributions = list\n"
    hide += "importlib.util.find_spec = shutil.which = lambda name: None\n"
    ask = "subprocess.run = lambda command, check: print(command[-1])\n"
    return subprocess.run(
        [sys.executable, "-c", hide + ask + source], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_first_cell_takes_the_wheel_beside_it_else_the_books_else_says_what_to_do(tmp_path):
    known = elsewhere.install_cell("warplab-1-py3-none-any.whl", "https://book.example/notebooks/").source
    alone = elsewhere.install_cell("warplab-1-py3-none-any.whl", "").source
    fetched = "warplab[notebook] @ https://book.example/notebooks/warplab-1-py3-none-any.whl"
    assert run(known, tmp_path).stdout.strip() == fetched
    told = run(alone, tmp_path)
    assert told.returncode == 1 and told.stderr.startswith("put warplab-1-py3-none-any.whl, which comes with")
    (tmp_path / "warplab-1-py3-none-any.whl").touch()
    beside = f"warplab[notebook] @ {(tmp_path / 'warplab-1-py3-none-any.whl').as_uri()}"
    assert {run(source, tmp_path).stdout.strip() for source in (known, alone)} == {beside}


def test_a_package_added_as_kaggles_input_is_found_with_its_versions_where_none_lies_beside(tmp_path):
    source = elsewhere.install_cell("warplab-1-py3-none-any.whl", "").source
    code = source.replace("/kaggle/input", str(tmp_path / "input"))
    given, working = tmp_path / "input/datasets/course", tmp_path / "working"
    given.mkdir(parents=True)
    working.mkdir()
    assert code != source and "in Kaggle: add it as input" in run(code, working).stderr
    (given / "warplab-1-py3-none-any.whl").touch()
    (given / "constraints.txt").write_text("numba==7\n")
    told = run(code.replace("subprocess.run([*", "print(chosen.read_text()); subprocess.run([*"), working)
    assert "numba==7" in told.stdout.splitlines()
    assert (given / "warplab-1-py3-none-any.whl").as_uri() in told.stdout


def test_what_the_kernel_has_imported_keeps_its_version_or_the_first_cell_says_to_restart(tmp_path):
    """Colab's kernels begin with NumPy imported; with another version on the disk its next import fails."""
    (tmp_path / "warplab-1-py3-none-any.whl").touch()
    (tmp_path / "constraints.txt").write_text("numpy==2\npyyaml==6 ; python_version > '3'\nnumba==1\n")
    loaded = "{'json': ['NumPy', 'PyYAML'], 'namespace': ['numba']}"  # a folder that several packages share
    code = "import json, sys, types\nsys.modules['namespace'] = types.ModuleType('namespace')\n"
    code += f"importlib.metadata.packages_distributions = lambda: {loaded}\n"
    code += "version = iter('1112')\nimportlib.metadata.version = lambda name: next(version)\n"
    cell = elsewhere.install_cell("warplab-1-py3-none-any.whl", "").source
    asked = "print(chosen.read_text()); subprocess.run([*"
    told = run(code + cell.replace("subprocess.run([*", asked), tmp_path)
    assert told.stdout.splitlines()[0] == "numba==1", told.stderr
    assert told.returncode == 1 and "had to be updated and is in use: restart the kernel" in told.stderr


@pytest.mark.slow
def test_a_python_that_started_without_numba_cuda_has_it_after_the_first_cell(tmp_path):
    """-S: no .pth file is read, as in a Python in which pip installs later what has one."""
    code = elsewhere.install_cell("warplab-1-py3-none-any.whl", "").source
    (tmp_path / "warplab-1-py3-none-any.whl").touch()
    installed = f"sys.path.append({sysconfig.get_path('purelib')!r})"
    code = re.sub(r"subprocess\.run\(.*, check=True\)", lambda _: installed, code)
    code += "\nfrom numba.cuda import debuginfo\nprint(debuginfo.__file__)"
    run = [sys.executable, "-S", "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert installed in code and "numba_cuda" in done.stdout, done.stderr


def test_a_page_that_needs_more_installs_it_too_but_keeps_what_is_there(tmp_path):
    code = elsewhere.install_cell("w.whl", "https://book.example/", ("torch", "triton", "cuda")).source
    whole = "warplab[notebook,torch,triton,cuda] @ https://book.example/w.whl"
    assert run(code, tmp_path).stdout.strip() == whole
    there = "importlib.util.find_spec = lambda name: name == 'torch'\n"  # as in Colab
    code = code.replace("\nneeded =", f"\n{there}needed =")
    assert run(code, tmp_path).stdout.strip() == whole.replace("torch,", "")


def test_the_first_cell_does_nothing_where_the_package_is(tmp_path):
    code = elsewhere.install_cell("warplab-1-py3-none-any.whl", "").source
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == done.stderr == ""


def test_files_that_a_page_reads_are_written_once_and_never_over_the_readers(tmp_path):
    code = elsewhere.files_cell({"cluster/a.py": "x = 'é'\n", "cluster/b.yaml": "b: 1\n"}).source
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster/b.yaml").write_text("mine\n")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "cluster/a.py").read_text(encoding="utf-8") == "x = 'é'\n"
    assert (tmp_path / "cluster/b.yaml").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["ps01", "ps04", "ps10"])
def test_a_problem_set_with_the_cell_before_it_can_be_handed_in(tmp_path, name):
    path = next((ROOT / "exercises" / name).glob("*.ipynb"))
    install = elsewhere.install_cell("warplab-1-py3-none-any.whl", "")
    nbformat.write(elsewhere.with_install(nbformat.read(path, 4), install), tmp_path / path.name)
    assert not [
        note for note in check_file(tmp_path / path.name, load_assignment(ROOT, name)).notes if note.fatal
    ]


@pytest.mark.slow
def test_the_built_book_offers_each_page_with_code_each_set_and_the_package(built_notebooks):
    folder, pages = built_notebooks
    for source in pages:
        cells = read_myst_markdown_notebook(source.read_text(encoding="utf-8")).cells
        wanted = [cell.source for cell in cells if cell.cell_type == "code"]
        wanted = [code for code in wanted if "import workshop" not in code and "from workshop" not in code]
        notebook = nbformat.read(folder / f"{source.stem}.ipynb", 4)
        there = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        assert there[-len(wanted) :] == wanted and 1 <= len(there) - len(wanted) <= 2
        text = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        assert not re.search(r"@@(cell|maths)|\{(term|cite|spec|price)\}|<svg", text), source.name
        page = (ROOT / f"_build/html/chapters/{source.stem}.html").read_text(encoding="utf-8")
        assert f"notebooks/{source.stem}.ipynb" in page
    with zipfile.ZipFile(next(folder.glob("*.zip"))) as archive:
        held = archive.namelist()
    sets = {path.name for path in ROOT.glob("exercises/ps*/*.ipynb")}
    assert sets | {f"{source.stem}.ipynb" for source in pages} <= set(held)
    assert sum(name.endswith(".whl") for name in held) == 1


@pytest.fixture(scope="module")
def built_notebooks():
    folder = ROOT / "_build/html/notebooks"
    if not folder.is_dir():
        pytest.skip("the book is not built: make book")
    pages = [
        path
        for path in sorted((ROOT / "chapters").glob("*.md"))
        if "```{code-cell}" in path.read_text("utf-8")
    ]
    assert len(pages) >= 14
    return folder, pages


WITHOUT_POSIX = """
import importlib, pkgutil, sys
import torch, matplotlib.pyplot, numba, jinja2, typer, rich.console, nbformat  # these have wheels for Windows
GONE = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog", "readline"}
GONE |= {"posix", "_posixsubprocess"}
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
for name in GONE - {"posix", "_posixsubprocess"}:
    sys.modules.pop(name, None)
import warplab
names = [found.name for found in pkgutil.walk_packages(warplab.__path__, "warplab.")]
names = [name for name in names if not name.endswith("__main__")]
for name in [*names, "autograder.validate", "autograder.cli", "autograder.discover", "autograder.layout"]:
    importlib.import_module(name)
print(len(names))
try:
    import autograder.grade
except ModuleNotFoundError as problem:
    print(problem.name)
"""


@pytest.mark.slow
def test_nothing_that_a_student_imports_needs_a_module_that_only_posix_has():
    done = subprocess.run([sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported, missing = done.stdout.split()
    assert int(imported) > 150 and missing == "fcntl"  # of the grader, which is not for Windows


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return elsewhere.build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


PLATFORMS = ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "windows"]


def resolved(requirement, platform, python):
    """What uv says of a requirement with wheels alone, at the versions of the course."""
    how = f"pip compile --quiet --no-annotate --only-binary :all: --python-platform {platform}"
    command = [sys.executable, "-m", "uv", *how.split(), "--python-version", python]
    command += ["-c", ROOT / "autograder/constraints.txt"]
    return subprocess.run([*command, "-"], input=requirement, capture_output=True, text=True, check=False)


@pytest.mark.full
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_students_install_has_wheels_for_every_dependency(wheel, platform, python):
    done = resolved(f"warplab[student] @ {wheel.as_uri()}", platform, python)
    assert done.returncode == 0 and "numba-cuda==" in done.stdout, done.stderr
    assert resolved("triton==3.7.1", "windows", python).returncode, "what has no wheel there must not resolve"


EXECUTE = """
import json, pathlib, sys
import nbformat
from nbclient import NotebookClient
path = pathlib.Path(sys.argv[1])
notebook = nbformat.read(path, 4)
client = NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(path.parent)}})
client.execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
import importlib.util
print(json.dumps([len(outputs), importlib.util.find_spec("warplab").origin]))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory, wheel):
    """A Python with the students' install and nothing else of the course, and a folder of notebooks."""
    place = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    python = place / "venv/bin/python"
    constraints = ROOT / "autograder/constraints.txt"
    torch = f"torch=={version('torch')}"  # the same build: with CUDA or without
    install = [python, "-m", "pip", "install", "--quiet", "-c", constraints, torch]
    subprocess.run(
        [*install, f"warplab[student,torch,cuda,triton] @ {wheel.as_uri()}", "nbclient"],
        check=True,
        capture_output=True,
    )
    return python, shutil.copytree(ROOT / "_build/html/notebooks", place / "notebooks")


@pytest.mark.full
def test_every_notebook_runs_from_top_to_bottom_with_nothing_but_the_students_install(built_notebooks, bare):
    python, folder = bare
    for path in sorted(folder.glob("*.ipynb")):
        done = subprocess.run(
            [python, "-P", "-c", EXECUTE, path], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{path.name}: {done.stderr[-2000:]}"
        outputs, origin = json.loads(done.stdout.splitlines()[-1])
        assert outputs and not origin.startswith(str(ROOT))


@pytest.mark.full
def test_the_first_three_sets_run_where_nothing_but_their_first_cell_installs(tmp_path, wheel):
    """A Python with a notebook's kernel alone. 2026-11-26, beside seven other jobs: 116 s for the
    first cell of ps00 on two cores, no cache, 718 MB more on the disk; its first kernel came 8 s later."""
    folder, python = tmp_path / "notebooks", tmp_path / "venv/bin/python"
    folder.mkdir()
    shutil.copy(wheel, folder)
    shutil.copy(ROOT / "autograder/constraints.txt", folder)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "nbclient", "ipykernel"], check=True)
    for name in ("ps00", "ps01", "ps02"):
        path = next((ROOT / "exercises" / name).glob("*.ipynb"))
        install = elsewhere.install_cell(wheel.name, "")
        nbformat.write(elsewhere.with_install(nbformat.read(path, 4), install), folder / path.name)
        run = [python, "-P", "-c", EXECUTE, folder / path.name]
        done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr[-2000:]}"
    held = sum(path.stat().st_size for path in (tmp_path / "venv").rglob("*") if not path.is_symlink())
    assert held < 1e9 and not list((tmp_path / "venv").glob("lib/*/site-packages/torch"))
