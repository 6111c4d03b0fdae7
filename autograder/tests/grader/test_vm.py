"""What was seen in each setting: complete, of the settings that `make vm-test` tries, and told as it was."""

import sys

import pytest
import yaml
from conftest import TESTS

from autograder.doctor import ATTEMPTS

sys.path.insert(0, str(TESTS / "vm"))
import table

MORE = {"memory_of_many", "offspring"}
SEEN = table.kept()
BOOTS = yaml.safe_load(table.HELD.with_name("settings.yml").read_text())
TRIES = [one for boot in BOOTS.values() for one in boot["tries"]]


@pytest.mark.parametrize("made", list(table.tables(SEEN)), ids=len)
def test_the_page_has_the_tables_that_were_measured(root, made):
    assert made in (root / "chapters/threat-model.md").read_text()


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: seen["setting"])
def test_a_sandbox_that_starts_was_attacked_in_every_way_or_the_reason_is_told(seen):
    for found in seen["sandboxes"].values():
        assert found and (isinstance(found, str) or set(found) == {*ATTEMPTS, *MORE})


def test_what_was_seen_in_a_virtual_machine_is_what_make_vm_test_tries(root):
    """A setting that is taken out leaves the page, and one that was not tried yet is named there."""
    seen = {one["setting"] for one in SEEN if one["machine"] != "host"}
    tries = {one["setting"] for one in TRIES}
    assert seen <= tries
    _, _, open_ones = (root / "chapters/threat-model.md").read_text().partition("Not finished: ")
    assert all(f"*{setting}*" in open_ones for setting in tries - seen)


@pytest.mark.parametrize("seen", [seen for seen in SEEN if "class" in seen], ids=lambda seen: seen["setting"])
def test_in_a_class_the_honest_have_all_points_and_the_takers_lose_the_task_in_which_they_took(seen):
    rows = seen["class"]["rows"]
    assert rows["ada"] == rows["grace"] == ["graded", 30.0, ""]
    assert {rows[name][1] for name in rows.keys() - {"ada", "grace"}} == {15.0}
