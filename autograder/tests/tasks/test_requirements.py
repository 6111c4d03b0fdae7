"""What a task asks for, the answers of the corpus that do without it, and the rows that these lose.

corpus/psNN/requirements.yml says it, and is held to the text, the rows and the corpus here. test_tasks.py
holds the rows that are named there to those that an answer loses.
"""

import pytest
from corpus_files import SOLUTIONS, entries_of, of_all_sets, required
from statements import OTHERS, VERBS, asks, first_word, sentences, words, words_of_set
from test_tasks import NAMES

from warplab.tasks import registry

MOST_WORDS = 26_771  # of the texts of all sets; a new task raises this by its own, and by no more


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_stands_in_the_text_of_the_set(name):
    text = words(SOLUTIONS[name.split("/")[0]].read_text())
    assert [asked["says"] for asked in required(name) if asked["says"] not in text] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_requirement_has_an_answer_that_does_without_it_or_a_reason_why_nobody_looks(name):
    answers = {entry.name for entry in entries_of(name) if entry.kind != "correct"}
    for asked in required(name):
        assert set(asked) in ({"says", "lost without it"}, {"says", "unchecked"}), asked
        assert asked.get("unchecked") or set(asked["lost without it"]) <= answers, asked["says"]
        assert all(asked.get("lost without it", {"": "-"}).values()), f"{asked['says']} costs nothing"


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_lost_by_an_answer_and_every_wrong_answer_belongs_to_a_requirement(name):
    lost = [asked["lost without it"] for asked in required(name) if "unchecked" not in asked]
    rows = {row for answers in lost for answer in answers.values() for row in answer}
    assert rows == {item.key for item in registry.get(name).items if item.kind != "time"}
    told = " ".join([*(answer for answers in lost for answer in answers), *map(str, required(name))])
    assert [e.name for e in entries_of(name) if e.kind != "correct" and e.name not in told] == []


def stands_beside_a_row(sentence, name):
    """Whether a requirement quotes it, or five words of it, or the task's domain has its words."""
    text = words(sentence)
    quoted = [words(one["says"]) for one in required(name)]
    told = [phrase for axis in registry.get(name).domain.values() for phrase in axis.words]
    return any(quote in text or text in quote or _runs(quote) & _runs(text) for quote in quoted) or any(
        phrase.replace("(s)", "") in text for phrase in told
    )


def _runs(text):
    """All runs of five words."""
    parts = text.split()
    return {tuple(parts[i : i + 5]) for i in range(len(parts) - 4)}


@pytest.mark.parametrize("name", NAMES)
def test_every_sentence_that_asks_and_every_limit_stands_beside_the_row_that_it_costs(name):
    """In requirements.yml, or in the task's domain. What no row watches is written as advice."""
    found = [one for one in sentences(name) if asks(one) and not stands_beside_a_row(one, name)]
    assert found == []


@pytest.mark.parametrize("name", NAMES)
def test_every_sentence_begins_with_a_word_that_is_known_to_ask_or_to_tell(name):
    """A verb that is in neither list would ask without being noticed: put it into statements.py."""
    known = {*VERBS, *OTHERS}
    assert [one for one in sentences(name) if (first_word(one) or "A") not in known] == []


@of_all_sets
def test_the_texts_of_the_sets_have_grown_by_no_word():
    """words_of_set() says what is counted."""
    more = sum(words_of_set(problem_set) for problem_set in SOLUTIONS) - MOST_WORDS
    assert more <= 0, f"{more} words too many: cut as many, or raise MOST_WORDS by those of a new task"
