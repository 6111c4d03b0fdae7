"""The puzzles that open each set: what they accept, what they say to what, and that no notebook tells."""

import json
import re

import numpy as np
import pytest

from autograder.layout import load_assignment
from autograder.sandbox import student
from warplab import check
from warplab.puzzles import blank

SETS = tuple(f"ps{number:02}" for number in range(1, 16))
BY_HAND = {
    "ps01/place": lambda row, col, width: row * width + col,
    "ps01/idle": (86 * 16 - 1366) * 768,  # 85.375 blocks are 86; 768 is 48 blocks exactly
    "ps01/corner": 3 * 3,
    "ps01/slowest": 100,
    "ps02/third": 5 + 128 + 128,
    "ps02/run": 16,  # 4 numbers are 16 bytes, a sector for two lanes
    "ps02/branch": 0,
    "ps02/one_more": 1,  # ceil(33 * 32 / 256) = 5 units a warp: 64 // 5 * 4 = 48 warps, of 32 in a block
    "ps03/limit": 1 / (0.05 + 0.95 / 20),
    "ps03/lost": 1,
    "ps03/rounds": 8,
    "ps03/lane": 40,
    "ps04/uses": 64,
    "ps04/two_rows": 2,  # 16 numbers of 4 bytes
    "ps04/reads": 16 / 64,
    "ps04/small_layer": 56 * 56 * 64 * 64 * 9 / (2048 * 1000),
    "ps05/waste": lambda lane: 8 * lane,
    "ps05/same_word": 1,
    "ps05/halo": 100 / 64,
    "ps05/overflow": 89,  # log(3.4028e38) is 88.72
    "ps06/plain": 4 + 4 + 8,
    "ps06/cards": 5,  # 16 * 7 GB = 112 GB, of 24
    "ps06/again": 4 / 3,
    "ps06/segments": 10,
    "ps07/plus_one": 16_777_216,
    "ps07/between": 8,
    "ps07/whisper": 2,  # 2e-8 lies below half of 2**-24 = 5.96e-8, 4e-8 above
    "ps07/outlier": 0,  # 0.3 * 127 / 100 = 0.38
    "ps08/kernels": 9,  # + | / ** * + * tanh + *
    "ps08/bits": 64,
    "ps08/pieces": 3 + 5,
    "ps08/orders": 3 + 100,
    "ps09/steps": 1.0,
    "ps09/flop": 6 / 2,
    "ps09/reader": 3.35e12 / 14e9,
    "ps09/company": 989 / 3.35,
    "ps09/half": 36 / 64,
    "ps10/piece": 0,
    "ps10/door": 2 * 999 / 1000,
    "ps10/moments": 2 + 2 + 12 / 8,
    "ps10/bubble": 3 / 7,
    "ps11/second": 1 / 2,
    "ps11/longer": 2,
    "ps11/text": "yes",
    "ps11/three": 3,
    "ps12/masked": 4 * 256 - 1000,
    "ps12/each": 1024 / 256,
    "ps12/requests": 4096 / 512,
    "ps12/squares": 24 * 3**2,
    "ps13/products": 2,
    "ps13/nothing": 2.3026,
    "ps13/first_step": 0.1,
    "ps13/causal": 1 + 2 + 3 + 4,
    "ps14/bound": 3 * 4 * 2**24 / 3.35e6,
    "ps14/places": "no",
    "ps14/spacing": 1 / 16,  # 1,000,000 is below 2**20
    "ps14/powers": 0,
    "ps15/borders": 3 * 2 * 64,
    "ps15/expected": 32 * 64 * 4,
    "ps15/parity": 0,  # steps 1, 4 and 7 share a barrier: phases 0, 1 and 2
    "ps15/stages": 3,  # 4 * 12,288 is 48 KiB, without the barriers
}


def cells_of(root, problem_set):
    notebook = json.loads(load_assignment(root, problem_set).path.read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


@pytest.mark.parametrize("problem_set", SETS)
def test_a_set_opens_with_three_to_five_blanks_and_no_cell_of_them_is_graded(root, problem_set):
    assignment = load_assignment(root, problem_set)
    asked = [text for kind, text in cells_of(root, problem_set) if text.startswith("puzzle(")]
    blanks = [re.fullmatch(r'puzzle\("(\w+/\w+)", (?:lambda [\w, ]+: )?\.\.\.\)', text) for text in asked]
    assert [found and found[1] for found in blanks] == blank.names(problem_set)
    assert 3 <= len(asked) <= 5
    texts = [text for _, text in cells_of(root, problem_set)]
    first_task = next(number for number, text in enumerate(texts) if text.startswith("## 1"))
    assert all(texts.index(text) < first_task for text in asked)
    assert not any("puzzle(" in spec.source for spec in assignment.graded())


@pytest.mark.parametrize("name", BY_HAND)
def test_the_answer_found_by_hand_is_accepted_and_told_why(name):
    reply = blank.get(name).reply(BY_HAND[name])
    assert (reply.state, reply.text) == ("right", blank.get(name).why)
    assert len(reply.text.split()) >= 10


def test_every_puzzle_has_been_worked_out_by_hand():
    assert blank.names() == list(BY_HAND)


@pytest.mark.parametrize("name", BY_HAND)
def test_each_known_slip_gets_its_own_sentence_and_any_other_answer_a_next_thought(name):
    puzzle = blank.get(name)
    assert puzzle.slips and len(set(puzzle.slips.values())) == len(puzzle.slips)
    for wrong, meaning in puzzle.slips.items():
        reply = puzzle._verdict(wrong, str(wrong))
        assert (reply.state, reply.text) == ("wrong", meaning)
    other = {str: "perhaps", tuple: (99,) * 15}.get(type(puzzle.answer), 77_777)
    reply = puzzle._verdict(other, str(other))
    assert reply.state == "wrong" and len(reply.text.split()) >= 5 and reply.text not in puzzle.slips.values()


@pytest.mark.parametrize("name", BY_HAND)
def test_no_released_notebook_holds_what_a_puzzle_says(root, name):
    puzzle, text = blank.get(name), "\n".join(text for _, text in cells_of(root, name[:4]))
    assert not any(said in text for said in (puzzle.why, *puzzle.slips.values()))
    if isinstance(puzzle.answer, float | int) and puzzle.answer >= 100 and name != "ps01/slowest":
        shown = f"{puzzle.answer:.0f}", f"{puzzle.answer:,.0f}"
        questions = text[text.index("guesses") : text.index("\n## 1")]
        assert not any(re.search(rf"\b{number}\b", questions) for number in shown)


@pytest.mark.parametrize("name", ["ps05/waste", "ps03/lost", "ps11/text"])
def test_a_blank_is_one_friendly_line(name, capsys):
    check.puzzle(name, (lambda lane: ...) if name == "ps05/waste" else ...)
    assert re.fullmatch(
        r"Your turn\. Put .* in the place of `\.\.\.` and run the cell\.\n", capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "name, answer, said",
    [
        ("ps03/lost", "one", 'A number is asked for here, and "one" is none.'),
        ("ps03/lost", True, "A number is asked for here, and True is none."),
        ("ps03/lost", float("nan"), "finite number"),
        ("ps11/text", 1, "A word is asked for here, in quotation marks."),
        ("ps05/waste", 8, "leave `lambda` where it stands"),
        ("ps05/waste", lambda lane: lane / 2, "an index is a whole number"),
        ("ps05/waste", lambda lane: 1000 * lane, "lane 5 asks for place 5000"),
        ("ps05/waste", lambda lane: lanes, "NameError"),  # noqa: F821
        ("ps01/place", lambda row, col, width: col, "puts pixel (1, 0) at place 0; it stands at 5"),
        ("ps01/place", lambda row, col: row + col, "cannot be tried"),
    ],
)
def test_what_cannot_be_compared_is_told_in_a_sentence(name, answer, said):
    reply = blank.get(name).reply(answer)
    assert reply.state != "right" and said in repr(reply)


def test_numbers_of_numpy_and_whole_floats_are_numbers():
    assert [blank.get("ps03/lane").reply(n).state for n in (np.int64(40), 40.0, np.float32(40))] == [
        "right"
    ] * 3


def test_a_function_is_counted_on_the_engine_and_drawn():
    tidy, spread = (blank.get("ps05/waste").reply(lambda lane, step=step: step * lane) for step in (2, 9))
    assert (tidy.head, tidy.state) == ("8? Not quite.", "wrong")  # 32 lanes, 8 bytes apart: 256 bytes
    assert spread.head == "Yes, 32."
    assert "<svg" in tidy._repr_html_() and "8 sectors of 32 bytes touched in x" in tidy.picture


def test_what_a_student_writes_is_escaped():
    assert "<b>" not in blank.get("ps11/text").reply("<b>")._repr_html_()


def test_an_unknown_name_is_told_with_those_that_there_are():
    with pytest.raises(KeyError, match="Known puzzles: ps05/waste, ps05/same_word"):
        check.puzzle("ps05/wastes", 32)


def test_a_mistyped_task_is_told_in_one_sentence_with_those_of_its_set():
    with pytest.raises(KeyError) as raised:
        check.grade("ps00/numbers", None)
    (told,) = raised.value._render_traceback_()
    assert "no task is called 'ps00/numbers'; did you mean 'ps00/number'? Known tasks: ps00/number, " in told
    assert "ps01" not in told


def test_where_a_submission_is_judged_nothing_is_counted(monkeypatch):
    monkeypatch.setattr(blank, "ask", lambda *_: pytest.fail("asked"))
    assert student.unasked("ps03/lost", 1) is None
    mute = "check.grade, check.predict, check.puzzle, check.climb = ungraded, unasked, unasked, unasked"
    assert mute in open(student.__file__, encoding="utf-8").read()


@pytest.mark.parametrize("name", blank.names())
def test_whatever_stands_in_the_blank_gets_a_sentence(name):
    numbers = (10**400, -(10**5000), float("nan"), float("inf"), np.float16("nan"), 1j, True)
    things = (None, "", b"x", [1], {}, np.zeros(2), max, int)
    functions = [lambda *_, found=found: found for found in (*numbers, *things, ...)]
    for given in (*numbers, *things, *functions, lambda *_: 1 / 0, lambda lane, *, k: k):
        told = blank.get(name).reply(given)
        assert told.state in ("wrong", "open") and told.text and told._repr_html_()
