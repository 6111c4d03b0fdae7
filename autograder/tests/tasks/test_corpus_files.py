"""An entry of the corpus that is written as an edit is the text that it says it is, or
a failing test with its name.
"""

import re

import pytest
import yaml
from corpus_files import CORPUS, Entry, all_entries, edited, make_test_tries, of_all_sets

BASE = """
# the mean of the neighbours
def smooth(x, out):
    for i in range(len(x)):
        total = x[i]  # begins with its own

        out[i] = total
    for i in range(len(x)):
        out[i] = total
"""
EDITED = [entry for entry in all_entries() if entry.edit is not None]
FILES = sorted(CORPUS.glob("ps*/*/edits.yml"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replace", "times"), [("out[i] = total", 2), ("out[i] = totals", 0), ("total", 0), ("", 6)]
)
def test_what_does_not_stand_there_exactly_once_is_refused(replace, times):
    with pytest.raises(ValueError, match=f"{times} times, not once"):
        edited(BASE, [{"replace": replace, "with": "pass"}])


def test_an_edit_that_no_longer_fits_is_told_with_its_name_and_its_base():
    edit = {"points": 3, "what": "x", "edits": [{"replace": "no such line", "with": ""}]}
    told = (
        "corpus/ps04/matmul_tiled/edits.yml: wrong_x no longer fits the reference in ps04_matmul.py: it has "
        "'no such line' 0 times"
    )
    with pytest.raises(ValueError, match=re.escape(told)):
        Entry("ps04/matmul_tiled", "wrong_x", edit).source()
    told = "wrong_x no longer fits correct_wide_steps"
    with pytest.raises(ValueError, match=re.escape(told)):
        Entry("ps04/matmul_tiled", "wrong_x", edit | {"base": "correct_wide_steps"}).source()


@pytest.mark.parametrize("entry", EDITED, ids=lambda entry: entry.id)
def test_an_edit_fits_its_base_and_has_the_form_that_the_readme_gives(entry):
    (made,) = set(entry.edit) - {"base", "points", "what"}
    assert made in ("edits", "given", "mutant")
    assert entry.kind in ("correct", "part", "wrong", "cheat") and entry.edit["what"]
    assert all(set(edit) == {"replace", "with"} for edit in entry.edit.get("edits", ()))
    assert not entry.path(entry.name).exists(), "there is a file of the same name"
    assert entry.edits_the_reference or entry.edit["base"].startswith("correct_")
    compile(entry.source(), entry.id, "exec")


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_no_entry_stands_twice(path):
    names = re.findall(r"^(\w+):", path.read_text(), re.MULTILINE)
    assert names == sorted(set(names)) == list(yaml.safe_load(path.read_text()))


@of_all_sets
def test_what_make_test_tries_is_there_and_wrong_in_two_ways():
    known, tried = {entry.id: entry for entry in all_entries()}, make_test_tries()
    assert {known[name].kind for name in tried["full"]} == {"correct"}
    for task, names in tried["tried"].items():
        assert "correct" not in {known[f"{task}/{name}"].kind for name in names}
        assert len(set(names)) >= 2, task
