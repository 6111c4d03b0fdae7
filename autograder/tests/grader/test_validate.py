"""Each way in which a submitted notebook can be broken has a code, a sentence, and never runs."""

import json
import os

import pytest
from grading import hand_in, make_course, notebook

from autograder.reader.contents import MAX_CELLS
from autograder.validate import Malformed, check_file
from autograder.validate.validate import MAX_BYTES


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("validate") / "course")


def cell(document, grade_id):
    return next(cell for cell in document["cells"] if cell["id"] == grade_id)


def codes(path, assignment, inside=None):
    with pytest.raises(Malformed) as caught:
        check_file(path, assignment, inside)
    assert all(len(defect.text) > 15 and "\n" not in defect.text for defect in caught.value.defects)
    return [defect.code for defect in caught.value.defects]


def without(document, grade_id):
    document["cells"] = [other for other in document["cells"] if other["id"] != grade_id]


def rename(document):
    cell(document, "time_it")["metadata"]["nbgrader"]["grade_id"] = "from_another_course"


def double(document):
    document["cells"].append(cell(document, "time_it") | {"id": "copy"})


def no_outputs(document):
    del cell(document, "time_it")["outputs"]


def many(document):
    document["cells"] += [
        {"cell_type": "markdown", "id": f"m{i}", "metadata": {}, "source": ""} for i in range(MAX_CELLS)
    ]


def huge_cell(document):
    cell(document, "time_it")["source"] = "x" * 300_000


def old_format(document):
    document["nbformat"] = 3


@pytest.mark.parametrize(
    "edit, code",
    [
        (rename, "unknown-cell"),
        (double, "duplicate-cell"),
        (no_outputs, "bad-schema"),
        (many, "too-many-cells"),
        (huge_cell, "long-cell"),
        (old_format, "wrong-format"),
        (lambda document: without(document, "time_it"), "missing-cell"),
        (lambda document: without(document, "explain"), "missing-cell"),
        (lambda document: document.pop("cells"), "not-notebook"),
        (lambda document: document.update(cells=7), "not-notebook"),
        (lambda document: document.update(nbformat_minor="x"), "wrong-format"),
    ],
)
def test_a_broken_notebook(course, tmp_path, edit, code):
    document = notebook(course[1])
    edit(document)
    assert code in codes(hand_in(tmp_path, "ada", document), course[1])


@pytest.mark.parametrize(
    "data, code",
    [
        (b"", "empty"),
        (b"{", "not-json"),
        (b"[1, 2]", "not-notebook"),
        (b"\xff\xfe\x00", "not-text"),
        (b'{"cells": [], "nbformat": 4, "x": "\\ud800"}', "bad-text"),
        (b"[" * 100_000, "too-deep"),
        (b'{"nbformat": 3, "worksheets": []}', "wrong-format"),
        (b" " * (MAX_BYTES + 1), "too-large"),
        (b'{"cells": [], "nbformat": 1' + b"0" * 10_000 + b"}", "not-json"),
    ],
)
def test_a_file_that_is_no_notebook(course, tmp_path, data, code):
    assert codes(hand_in(tmp_path, "ada", data), course[1]) == [code]


def test_a_missing_file_a_folder_and_a_pipe(course, tmp_path):
    assert codes(tmp_path / "nothing.ipynb", course[1]) == ["not-found"]
    assert codes(tmp_path, course[1]) == ["not-a-file"]
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert codes(tmp_path / "pipe.ipynb", course[1]) == ["not-a-file"]


def test_a_link_out_of_the_students_own_folder_is_refused(course, tmp_path):
    own = tmp_path / "submitted" / "ada"
    own.mkdir(parents=True)
    elsewhere, neighbour = (
        hand_in(tmp_path / where, "bob", notebook(course[1])) for where in ("elsewhere", "submitted")
    )
    for name, target in (("a", elsewhere), ("b", neighbour), ("c", "../bob/ps01_tiny.ipynb")):
        (own / f"{name}.ipynb").symlink_to(target)
        assert codes(own / f"{name}.ipynb", course[1], inside=own) == ["link-outside"]
    (own / "loop.ipynb").symlink_to("loop.ipynb")
    assert codes(own / "loop.ipynb", course[1], inside=own) == ["unreadable"]
    (own.parent / "eve").symlink_to(neighbour.parent)
    assert codes(own.parent / "eve" / "ps01_tiny.ipynb", course[1], inside=own.parent / "eve") == [
        "link-outside"
    ]
    assert check_file(neighbour, course[1], inside=neighbour.parent).notes == ()


def test_what_the_student_must_not_change_is_restored(course, tmp_path):
    document = notebook(course[1])
    cell(document, "launch_plan-test")["metadata"]["nbgrader"]["points"] = 1000
    cell(document, "launch_plan-test")["source"] = "100"
    document["cells"].remove(cell(document, "time_it-test"))
    answer = cell(document, "launch_plan")
    answer["cell_type"] = "markdown"
    del answer["outputs"], answer["execution_count"]
    checked = check_file(hand_in(tmp_path, "ada", document), course[1])
    assert sorted(note.code for note in checked.notes) == [
        "changed-type",
        "edited-metadata",
        "edited-test",
        "missing-test",
    ]
    released = json.loads(course[1].path.read_text())
    restored = {one["id"]: one for one in checked.notebook["cells"]}
    for grade_id in ("launch_plan-test", "time_it-test"):
        want = cell(released, grade_id)
        assert restored[grade_id]["metadata"] == want["metadata"]
        assert restored[grade_id]["source"] == "".join(want["source"])
    assert restored["launch_plan"]["cell_type"] == "code"
    order = [one["id"] for one in checked.notebook["cells"]]
    assert order.index("time_it-test") == order.index("time_it") + 1


def test_cells_that_share_an_id_get_new_ones(course, tmp_path):
    document = notebook(course[1])
    document["cells"] += [{"cell_type": "markdown", "id": "time_it", "metadata": {}, "source": "mine"}] * 2
    checked = check_file(hand_in(tmp_path, "ada", document), course[1])
    assert [note.code for note in checked.notes] == ["duplicate-id"]
    assert len({one["id"] for one in checked.notebook["cells"]}) == len(document["cells"])


def test_outputs_and_foreign_metadata_are_dropped(course, tmp_path):
    document = notebook(course[1])
    document["metadata"]["kernelspec"] = {"name": "evil", "display_name": "evil"}
    given = document["cells"][1]
    given["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 1000}]
    given["metadata"]["warplab"] = {"task": "ps01/time_it"}
    checked = check_file(hand_in(tmp_path, "ada", document), course[1])
    assert checked.notebook["cells"][1]["outputs"] == []
    assert checked.notebook["cells"][1]["metadata"] == {}
    assert checked.notebook["metadata"]["kernelspec"]["name"] == "python3"


def test_notebooks_of_older_jupyter_without_cell_ids_pass(course, tmp_path):
    document = notebook(course[1])
    document["nbformat_minor"] = 4
    for one in document["cells"]:
        del one["id"]
    checked = check_file(hand_in(tmp_path, "ada", document), course[1])
    assert checked.notes == ()
    assert len({one["id"] for one in checked.notebook["cells"]}) == len(document["cells"])
