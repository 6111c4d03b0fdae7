"""Warm-ups: drawn before a line is written, one opened by the one before, an answer for whoever asks."""

import pytest
from corpus_files import SOLUTIONS, entries_of, solution_of
from numba import cuda

from warplab.tasks import drawn_threads, feedback, registry, warm_ups
from warplab.tasks.feedback import report_on

NAMES = registry.names("ps00")


@pytest.fixture
def shown(monkeypatch):
    """What cells show; at first every warm-up but the first is closed."""
    cards = []
    monkeypatch.setattr(warm_ups, "_done", set())
    monkeypatch.setattr(feedback, "show", cards.append)
    monkeypatch.setattr(feedback, "_show_card", lambda bar: None)
    return cards


def test_a_right_answer_opens_the_next_and_so_does_an_answer_that_is_shown(shown):
    assert feedback.grade("ps00/double", ...) == 0.0
    assert "opens after `ps00/number`" in shown[-1].text and not shown[-1].picture
    feedback.grade("ps00/number", ...)
    assert shown[-1].head == "What is asked." and "<line" not in shown[-1].picture
    assert feedback.grade("ps00/number", solution_of("ps00/number")[0]) == 1.0
    assert shown[-2].head == "Right." and "`ps00/double` is open" in shown[-2].text
    assert feedback.grade("ps00/double", "Show me") == 0.0
    assert "out[t] = 2 * mine" in shown[-1].code and "<line" in shown[-1].picture
    feedback.grade("ps00/bounds", ...)
    assert shown[-1].head == "What is asked." and "out[t]" in shown[-2]._repr_html_()
    warm_ups._done.discard("ps00/number")
    feedback.grade("ps00/double", ...)
    assert shown[-1].head == "What is asked."  # it was shown, so it stays open


def test_a_stub_is_drawn_without_lines(shown):
    @cuda.jit
    def number(out):
        raise NotImplementedError()

    assert feedback.grade("ps00/number", number) == 0.0
    assert shown[0].head == "Nothing has run yet." and "<line" not in shown[0].picture
    assert "not written yet" in shown[1].report.lines[0].reason


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_that_is_shown_is_right_and_stands_in_the_solution(name, shown):
    kernel = registry.get(name).worked()
    assert report_on(name, kernel).score == 1.0
    warm_ups._done.update(NAMES)
    code = registry.get(name).instead("show me").code.splitlines()[2:]
    text = SOLUTIONS["ps00"].read_text()
    assert code and all(line.strip() in text for line in code)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("entry", [e for name in NAMES for e in entries_of(name)], ids=lambda e: e.id)
def test_a_wrong_attempt_is_drawn_with_a_sentence_on_what_is_wrong(entry):
    task = registry.get(entry.task)
    kernel = entry.namespace()[task.entry]
    card = task.beside(report_on(entry.task, kernel), kernel)
    assert card.head == "Not yet right." and "<line" in card.picture and len(card.text.split()) >= 6


def test_a_picture_by_hand():
    """Eight threads, five numbers, no check: threads 5 to 7 read and write outside, orange and told."""

    @cuda.jit
    def bounds(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t] + 1

    task = registry.get("ps00/bounds")
    run = task.run(bounds)
    outside = [t for t in run.touches if t.place > 4]
    assert [(t.thread, t.kind, t.name) for t in outside] == [
        (n, kind, name) for kind, name in (("read", "x"), ("write", "out")) for n in (5, 6, 7)
    ]
    picture, told = drawn_threads.picture(task.scene(), run)
    assert picture.count("<circle") == 8 and picture.count("stroke-dasharray") == 6
    assert "Thread 5 reads x[5], which is outside: the last place is x[4]." in told


def test_a_thread_of_two_directions_is_named_by_both_as_its_circle_shows_x_alone():
    @cuda.jit
    def plane(out):
        out[cuda.threadIdx.x, cuda.threadIdx.y] = 1

    task = registry.get("ps00/plane")
    _, told = drawn_threads.picture(task.scene(), task.run(plane))
    assert told.startswith("Thread x = 3, y = 0 writes out[3, 0], which is outside")


def test_the_reason_is_that_of_a_case_that_fails():
    """20 written as a number: the drawn case, of 20 numbers, is right, and the one of more is not."""

    @cuda.jit
    def stride(x, out):
        for i in range(cuda.grid(1), 20, cuda.gridsize(1)):
            out[i] = x[i] + 1

    line = report_on("ps00/stride", stride).lines[0]
    assert "3 blocks of 8" in line.reason and "everything from [20] on" in line.reason
