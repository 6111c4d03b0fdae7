"""A released notebook without stubs has the same cells, and in them no line to fill in."""

import json

from conftest import ROOT

from workshop.from_scratch import asked, from_scratch

RELEASED = ROOT / "exercises" / "ps13" / "ps13_train_it.ipynb"


def test_cells_and_ids_stay_and_stubs_go():
    before, after = json.loads(RELEASED.read_text()), json.loads(from_scratch(RELEASED))
    assert [c["id"] for c in before["cells"]] == [c["id"] for c in after["cells"]]
    assert [c["metadata"] for c in before["cells"]] == [c["metadata"] for c in after["cells"]]
    code = ["".join(c["source"]) for c in after["cells"] if c["cell_type"] == "code"]
    assert not any("NotImplementedError" in "".join(c["source"]) for c in after["cells"])
    assert sum('grade("ps13/' in source for source in code) == sum(
        'grade("ps13/' in "".join(c["source"]) for c in before["cells"] if c["cell_type"] == "code"
    )


def test_a_stub_leaves_how_it_is_called_and_what_it_does():
    stub = 'def f(device, x, out):\n    """Fill out. About 3 lines.\n\n    x  (n,)\n    """\n    raise\n'
    assert (
        asked("def helper(a):\n    pass\n" + stub)
        == "# f(device, x, out)\n#     Fill out.\n#\n#     x  (n,)\n"
    )
