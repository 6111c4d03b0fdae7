"""The budget of lines of code: what counts as a line, and that each excess is told."""

from workshop.line_budget import code_lines, excesses, measured

SOURCE = '''"""A module
of two lines of docstring."""

import math  # one

LONG = [
    1,  # a comment is no reason to count a line twice
    # a line of comment
    2,
]


def area(r):
    """Nothing of this counts."""
    return (
        math.pi * r * r
    )
'''


def test_blank_lines_comments_and_docstrings_are_no_code():
    # import, LONG = [, 1, 2, ], def, return (, math.pi, )
    assert code_lines(SOURCE) == 9


def test_a_file_counts_for_the_innermost_room_and_a_file_without_a_room_is_told(tmp_path):
    for name in ("lab/a.py", "lab/engine/b.py", "lab/engine/deep/c.py", "lab2/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n\n\ny = 2\n")
    rooms = {"lab/engine": {}, "lab/a.py": {}, "lab2": {"all-lines": True}}
    counts, strangers = measured(rooms, tmp_path)
    assert counts == {"lab/engine": (4, 2), "lab/a.py": (2, 1), "lab2": (4, 1)}
    assert strangers == []
    assert measured({"lab/engine": {}}, tmp_path)[1] == ["lab/a.py"]


def test_a_room_and_a_sum_over_their_limits_are_each_told():
    table = {
        "rooms": {"a": {"limit": 10}, "b": {"limit": 9}, "c": {}},
        "sums": {"both": {"limit": 18, "of": ["a", "b"]}, "all": {"limit": 10_000, "of": ["a", "b", "c"]}},
    }
    counts = {"a": (10, 1), "b": (10, 1), "c": (5_000, 1)}
    told = excesses(table, counts)
    assert told == ["b has 10 lines of code and may have 9", "both has 20 lines of code and may have 18"]
