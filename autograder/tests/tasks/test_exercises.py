"""What a student meets on the first day: every notebook opens everywhere and runs from
top to bottom as it was handed out.
"""

import json
import linecache
import re
import warnings

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "exercises").glob("ps*/*.ipynb"))


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_untouched_notebook_runs_to_its_end_without_an_exception(path, capsys):
    namespace = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        source, name = "".join(cell["source"]), f"<{path.stem} {number}>"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, name, "exec"), namespace)
    assert "not written yet" in capsys.readouterr().out


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_one_that_jupyterlab_vs_code_and_colab_open_alike(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (
        4,
        5,
    )  # the first with ids of cells, by which answers are found
    # a name that every service has, no folder of ours
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"]["name"] == "python"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in ids)
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        assert "attachments" not in cell and not cell.get("outputs")
        assert not re.search(
            r"(?m)^\s*[%!]|ipywidgets|get_ipython|IPython\.display import .*(HTML|Javascript)", source
        ), source[:200]


def test_there_is_a_notebook_for_every_set():
    assert [path.parent.name for path in NOTEBOOKS] == [f"ps{number:02}" for number in range(16)]


def hours_of(path):
    """Hours for what has no star, and for the stars: the chapters' minutes for words, cells and guesses, 2.5
    for each line that a stub asks for, and 15 for a written answer.
    """
    minutes, star = {False: 0.0, True: 0.0}, False
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source, graded = "".join(cell["source"]), cell["metadata"].get("nbgrader", {})
        text = " ".join(re.findall(r'"""(.*?)"""', source, re.DOTALL)) if graded.get("solution") else ""
        if cell["cell_type"] == "markdown":
            for title in re.findall(r"^## (.*)$", source, re.MULTILINE):
                star = "*" in title
            minutes[star] += len(source.split()) / 100 + 15 * bool(graded.get("solution"))
            continue
        lines = sum(map(int, re.findall(r"\b(\d+) lines?(?=[.,])", text)))
        guesses = len(re.findall(r"\b(?:predict|puzzle)\(", source))
        minutes[star] += 1 + 4 * guesses + len(text.split()) / 100 + 2.5 * lines
    return minutes[False] / 60, minutes[True] / 60


def test_the_warm_ups_take_no_more_than_the_most_that_their_head_says():
    head = "".join(json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))["cells"][0]["source"])
    assert "**About an hour** (estimated;\nup to two" in head and hours_of(NOTEBOOKS[0])[0] <= 2


@pytest.mark.parametrize("path", NOTEBOOKS[1:], ids=lambda path: path.stem)
def test_a_set_stays_within_the_hours_of_its_head(path):
    head = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    said = re.search(r"\*\*About ([\d.]+) hours\*\* \(estimated(?:; the stars? about ([\d.]+) more)?\)", head)
    needed, starred = hours_of(path)
    told = f"{needed:.2f} hours, and {starred:.2f} for stars: correct the head, or ask for less"
    assert needed <= 1.05 * float(said[1]), told
    assert needed + starred <= 1.05 * (float(said[1]) + float(said[2] or 0)), told
