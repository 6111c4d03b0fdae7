"""What was seen in each setting: complete, and told by the book as it was."""

import json
import sys
from pathlib import Path

import pytest

from autograder.doctor import ATTEMPTS

sys.path.insert(0, str(Path(__file__).with_name("vm")))
import table

MORE = {"memory_of_many", "offspring"}
SEEN = json.loads(table.HELD.read_text())


def test_the_page_has_the_table_that_was_measured(root):
    assert table.table() in (root / "chapters/threat-model.md").read_text()


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: seen["setting"])
def test_a_sandbox_that_starts_was_attacked_in_every_way_or_the_reason_is_told(seen):
    for found in seen["sandboxes"].values():
        assert found and (isinstance(found, str) or set(found) == {*ATTEMPTS, *MORE})
