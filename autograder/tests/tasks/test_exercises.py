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
    assert (
        notebook["metadata"]["kernelspec"]["name"] == "python3"
    )  # a name that every service has, no folder of ours
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
    assert [path.parent.name for path in NOTEBOOKS] == [f"ps{number:02}" for number in range(15)]
