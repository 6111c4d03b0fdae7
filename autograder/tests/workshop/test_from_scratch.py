"""A released notebook without stubs has the same cells, and in them no line to fill in."""

import json

import pytest
from conftest import ROOT
from grading import answers, grading, hand_in, make_course

from workshop.from_scratch import asked, from_scratch

WARM_UPS = (
    ROOT / "exercises" / "ps00" / "ps00_warm_ups.ipynb"
)  # nothing is handed in, and its stubs are the lesson
RELEASED = sorted({*(ROOT / "exercises").glob("ps*/*.ipynb")} - {WARM_UPS})


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.parent.name)
def test_cells_and_ids_stay_and_stubs_go(released):
    before, after = json.loads(released.read_text()), json.loads(from_scratch(released))
    assert [c["id"] for c in before["cells"]] == [c["id"] for c in after["cells"]]
    assert [c["metadata"] for c in before["cells"]] == [c["metadata"] for c in after["cells"]]
    code = ["".join(c["source"]) for c in after["cells"] if c["cell_type"] == "code"]
    assert not any("NotImplementedError" in "".join(c["source"]) for c in after["cells"])
    assert sum('grade("ps' in source for source in code) == sum(
        'grade("ps' in "".join(c["source"]) for c in before["cells"] if c["cell_type"] == "code"
    )


@pytest.mark.slow
def test_it_is_handed_in_and_graded_as_the_set_that_it_is(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    bare = json.loads(from_scratch(assignment.path))
    hand_in(tmp_path / "in", "ada", bare)
    for cell in bare["cells"]:
        cell["source"] = answers(root).get(cell["id"], cell["source"])
    hand_in(tmp_path / "in", "bob", bare)
    rows = grading(root, "ps01", tmp_path / "in", tmp_path / "out").rows()
    assert {row.student: (row.status, row.score) for row in rows} == {
        "ada": ("graded", 0),
        "bob": ("graded", 30),
    }


def test_a_stub_leaves_how_it_is_called_and_what_it_does():
    stub = 'def f(device, x, out):\n    """Fill out. About 3 lines.\n\n    x  (n,)\n    """\n    raise\n'
    assert (
        asked("def helper(a):\n    pass\n" + stub)
        == "# f(device, x, out)\n#     Fill out.\n#\n#     x  (n,)\n"
    )
