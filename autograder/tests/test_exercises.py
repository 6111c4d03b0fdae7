"""What a student meets on the first day: every notebook runs from top to bottom as it was handed out."""

import json
import linecache
import warnings
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "exercises").glob("ps*/*.ipynb"))


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


def test_there_is_a_notebook_for_every_set():
    assert [path.parent.name for path in NOTEBOOKS] == [f"ps{number:02}" for number in range(1, 12)]
