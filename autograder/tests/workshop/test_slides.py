"""The lectures: what a slide takes from its page, their forty minutes, and the sums behind wrong answers."""

import sys

import pytest
from conftest import ROOT

from autograder.user_error import UserError
from workshop import book
from workshop.slides import __main__ as slides
from workshop.slides.lecture import LecturedPage

PAGE = """<html><head><link rel="stylesheet" href="../_static/course.css?v=1"></head>
<article><section id="one">
<h1>5. Memory<a class="headerlink" href="#one">#</a></h1>
<div class="frame"><p><strong>Questions.</strong> Why?</p><p>More.</p></div>
<section id="loads"><h2>Loads</h2>
<p>Before it, see <a href="glossary.html#term-warp">warp</a> and <a href="#loads">here</a>.</p>
<div class="cell"><div class="cell_input"><div class="highlight-ipython3"><pre>x = load()</pre></div></div>
<div class="cell_output"><pre>8 sectors</pre></div></div><p>After it.</p>
<div class="cell"><figure id="fig-one"><svg viewBox="0 0 9 9"><path d="M1 1"/></svg>
<figcaption>Found.</figcaption></figure></div>
<div class="problem" id="problem-5-2"><p>How many?</p></div>
<details class="solution"><summary>Solution</summary><p>Eight.</p>
<div class="cell"><div class="cell_input">print(8)</div><div class="cell_output">8</div></div></details>
</section>
<section id="in-short"><h2>In short</h2><ul><li>Count.</li></ul></section>
<section id="quiz"><h2>Quiz</h2><p><strong>1.</strong> First?</p>
<details><summary>Answer</summary><p>Yes.</p></details>
<p><strong>2.</strong> A second?</p><pre>with code</pre><details><summary>Answer</summary><p>No.</p></details>
</section></section></article></html>"""
LECTURES = slides.lectures()
CHOSEN = [
    "x = load()",
    "fig-one",
    {"ask": "problem 5.2", "wrong": {"4": ["halved it", "8 / 2"]}},
    {"ask": "quiz 2", "wrong": {}},
]


def test_slides_are_figures_cells_and_questions_of_the_page():
    made = LecturedPage("05-memory", PAGE).slides(CHOSEN)
    titles = ["5. Memory", "Loads", "Loads", "A question to the room", "The answer"]
    assert [slide.title for slide in made] == [*titles, *titles[3:], "In short"]
    assert "Why?" in made[0].body and "More." not in made[0].body and "#</a>" not in made[0].title
    assert "x = load()" in made[1].body and "8 sectors" in made[1].body
    assert "Before it" in made[1].notes and "After it" in made[1].notes
    assert 'href="../chapters/glossary.html#term-warp"' in made[1].notes
    assert 'href="../chapters/05-memory.html#loads"' in made[1].notes
    assert '<svg viewBox="0 0 9 9"><path d="M1 1"/></svg>' in made[2].body and "Found." in made[2].body
    assert "How many?" in made[3].body and "Eight." not in made[3].body
    assert "Eight." in made[4].body and "print(8)" not in made[4].body
    assert made[4].wrong == (("4", "halved it"),)
    assert "A second?" in made[5].body and "with code" in made[5].body and "First?" not in made[5].body
    assert "No." in made[6].body and "Count." in made[7].body
    # 2 to open, 3 to close, 5 for each question: 25 are left for two slides
    assert [slide.minutes for slide in made] == [2, 12.5, 12.5, 2, 3, 2, 3, 3]


@pytest.mark.parametrize("chosen", ["fig-two", "y = load()", "fig-one:x"])
def test_what_the_page_does_not_have_is_named(chosen):
    with pytest.raises(UserError, match=f"05-memory has 0 of .*{chosen.removeprefix('fig-')[:3]}"):
        LecturedPage("05-memory", PAGE).slides([chosen])


@pytest.mark.parametrize(
    "chosen, complaint",
    [
        ([5], "05-memory has 5, expected a figure's id"),
        ([{"fig-one": None}], "expected a figure's id"),
        ([{"ask": "quiz 2"}, "fig-one"], "or ask: with wrong:"),
        ([{"ask": "problem 5.2:x", "wrong": {}}, "fig-one"], "has 0 of div"),
        ([{"ask": "quiz 2", "wrong": {}}], "nothing to show beside"),
        ([], "nothing to show beside"),
        (["fig-one", *[{"ask": "quiz 2", "wrong": {}}] * 7], "no time"),
    ],
)
def test_a_line_that_is_none_of_a_lectures_is_named(chosen, complaint):
    with pytest.raises(UserError, match=complaint):
        LecturedPage("05-memory", PAGE).slides(chosen)


def test_a_list_of_lectures_that_cannot_be_read_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(slides, "HERE", tmp_path)
    (tmp_path / "lectures.yml").write_text("05-memory: [")
    assert slides.main() == 1 and "lectures.yml" in capsys.readouterr().err


def test_each_chapter_has_a_lecture_with_two_questions_and_what_wrong_answers_mean():
    assert [f"chapters/{name}" for name in LECTURES] == [
        page for page in book.pages(ROOT) if "/" in page and page[9:11].isdigit()
    ], "each chapter has a lecture in autograder/workshop/slides/lectures.yml, and no other page"
    for name, chosen in LECTURES.items():
        asked = [one for one in chosen if isinstance(one, dict)]
        assert len(asked) == 2 and all(len(one["wrong"]) >= 2 for one in asked), name
        assert 7 <= len(chosen) - 2 <= 9, name


def test_a_number_that_a_room_says_is_what_its_sum_gives(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    from problems import NUMBER, is_printed

    sys.modules.pop("problems")
    sums = [
        (said, means[1])
        for chosen in LECTURES.values()
        for one in chosen
        if isinstance(one, dict)
        for said, means in one["wrong"].items()
        if isinstance(means, list)
    ]
    wrong = [said for said, worked in sums if not is_printed(NUMBER.search(said)[0], str(eval(worked)))]
    assert len(sums) > 25 and wrong == []


@pytest.mark.browser
def test_the_built_book_has_what_its_lectures_show(tmp_path):
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / "_build" / "html" / "chapters").symlink_to(ROOT / "_build" / "html" / "chapters")
    told = []
    slides.make(tmp_path, told.append)
    assert told == [f"_build/html/slides/index.html: {len(LECTURES)} lectures of 40 minutes"]
    page = (tmp_path / "_build/html/slides/05-memory.html").read_text()
    assert page.count('<section class="slide') == 15 and "minute 37 to 40" in page
    assert 'src="http' not in page and '<link rel="stylesheet" href="http' not in page


def test_a_book_that_is_not_built_is_told(tmp_path):
    with pytest.raises(UserError, match="01-pixels.html is not there; run make book"):
        slides.make(tmp_path, print)
