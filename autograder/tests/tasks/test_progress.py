"""The bar under each table: what of a problem set this notebook has earned, and what it has not tried."""

import re

import pytest
from test_check import plan, swapped

from autograder import cli
from autograder.judge.judge import CellVerdict
from autograder.report.page import table
from warplab import crossing
from warplab.tasks import progress, registry
from warplab.tasks.feedback import Table, grade, report_on
from warplab.tasks.progress import after
from warplab.tasks.rubric import Line, Report

# ps01: 20 + 15 + 25 + 20 + 15 = 95 points, of which 2 of grayscale's are for speed


@pytest.fixture(autouse=True)
def fresh_kernel(monkeypatch):
    monkeypatch.setattr(progress, "_latest", {})


@pytest.fixture(params=[False, True], ids=["no GPU", "CUDA"])
def timed(request, monkeypatch):
    monkeypatch.setattr(crossing, "can_time", lambda: request.param)
    return request.param


def report(name, points, most, state="full"):
    return Report(name, (Line("k", "correctness", "Row", points, most, state),))


def test_a_check_is_followed_by_the_points_of_its_set(capsys, timed):
    grade("ps01/launch_plan", swapped)
    shown = capsys.readouterr().out
    assert "ps01 so far: 5 of 95 points that checks give  [##......................................]" in shown
    assert "launch_plan 5 of 15" in shown
    assert ("left open: 2 for speed" in shown) is not timed


def test_the_last_check_counts_better_or_worse():
    assert after(report("ps01/grayscale", 18.0, 18.0)).points == 18
    assert after(report("ps01/launch_plan", 15.0, 15.0)).points == 33
    assert after(report("ps01/launch_plan", 4.5, 15.0, "partial")).points == 22.5
    assert after(report("ps01/grayscale", 0.0, 18.0, "lost")).points == 4.5


def test_sets_are_counted_apart():
    after(report("ps01/grayscale", 18.0, 18.0))
    bar = after(report("ps04/matmul_naive", 20.0, 20.0))
    assert (bar.name, bar.points, bar.max) == ("ps04", 20, 95)


def test_what_was_not_checked_is_named():
    bar = after(report("ps01/grayscale", 0.0, 18.0, "lost"))
    assert bar.parts[0] == "grayscale 0 of 18"  # tried and lost is not the same as not tried
    assert bar.parts[1].startswith(
        "not checked since the kernel started: launch_plan, box_blur, mandelbrot, time_it"
    )


def test_points_for_speed_are_open_without_a_gpu_and_earned_with_one(timed):
    state, points = ("full", 2.0) if timed else ("ungraded", 0.0)
    bar = after(Report("ps01/grayscale", (Line("time", "time", "Time", points, 2.0, state),)), "time")
    assert (bar.points, bar.open, bar.max) == ((2, 0, 95) if timed else (0, 2, 95))
    assert ("grayscale, speed 2 of 2" in bar.parts) is timed


def test_all_points_but_those_for_speed_fill_the_bar(timed):
    for name in registry.names("ps01"):
        bar = after(report(name, registry.get(name).points_for(), registry.get(name).points_for()))
    assert (bar.points, bar.open) == (93, 0 if timed else 2)
    assert bar.parts[1:] == (
        ["not checked since the kernel started: grayscale, speed"]
        if timed
        else ["left open: 2 for speed, which need a CUDA GPU"]
    )


def test_the_bar_says_its_value_is_plain_html_in_the_pages_own_colours_and_escapes_what_it_names():
    bar = after(report("ps01/box_blur", 19.0, 25.0))
    html = bar._repr_html_()
    told = {"role": "progressbar", "aria-valuemin": 0, "aria-valuemax": 95, "aria-valuenow": 19}
    told |= {"aria-label": "Points in ps01"}
    assert [key for key, value in told.items() if f'{key}="{value}"' not in html] == []
    assert f"width:{100 * 19 / 95:.1f}%" in html and "19 of 95 points" in html
    assert "color:inherit;background:transparent" in html
    assert set(re.findall(r"<(\w+)", html)) == {"div", "strong", "small", "br"}
    assert not re.search(r"position|script|<style|url\(|\son\w+=", html)
    assert "color:#" not in html.replace("background:#", "")
    bar.name, bar.parts = '"><script>', ["<script>", "a < b"]
    html = bar._repr_html_()
    assert "<script" not in html and 'aria-label="Points in &#34;&gt;&lt;script&gt;"' in html
    assert "&lt;script&gt;<br>a &lt; b</small>" in html


def test_a_table_needs_no_script_no_style_sheet_no_place_and_no_colours_of_its_own():
    """JupyterLab takes scripts out of a stranger's notebook, Colab and VS Code show it in its own frame."""
    html = Table(report_on("ps01/launch_plan", swapped))._repr_html_()
    assert "<details" in html
    assert not re.search(r"position:|<script|<style|<link|<iframe|url\(|\son\w+=", html)
    assert "color:inherit" in html and "background:transparent" in html
    assert "color:#" not in html.replace("border-left:.35em solid #", "")


def test_feedback_shows_the_table_of_a_cell_and_no_bar():
    grade("ps01/launch_plan", plan)
    lines = (vars(report("ps01/launch_plan", 15.0, 15.0).lines[0]),)
    cell = CellVerdict("grade", 15.0, 15.0, "graded", "ps01/launch_plan", lines=lines)
    assert "15 of 15 points" in repr(table(cell)) and "so far" not in repr(table(cell))
    assert "progress" not in table(cell)._repr_html_()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the notebook of ps01, in which the kernel runs."""
    (tmp_path / "ps01_pixels.ipynb").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_was_solved_survives_a_restart_and_is_told_apart(folder, monkeypatch, capsys):
    monkeypatch.setattr("time.time", iter([1000.0, 1300.0, 9000.0]).__next__)
    progress.remember(report("ps01/grayscale", 18.0, 18.0))
    progress.remember(report("ps01/grayscale", 1.0, 2.0, "partial"), "time")
    progress.remember(report("ps01/box_blur", 5.0, 25.0, "partial"))  # after a pause that does not count
    bar = after(report("ps01/launch_plan", 15.0, 15.0))  # of a new kernel
    assert bar.points >= 38 and bar.parts[0] == "launch_plan 15 of 15"
    assert bar.parts[1].startswith("before this kernel started: grayscale 18 of 18")
    assert "box_blur 5 of" in bar.parts[1] and "box_blur" not in bar.parts[2]
    assert progress.solved("ps01/grayscale") and not progress.solved("ps01/box_blur")
    (told,) = progress.told_in(folder)
    assert "not checked here yet: launch_plan" in told
    for where in ([], [str(folder)]):  # here, or said
        monkeypatch.setattr("sys.argv", ["autograder", "progress", *where])
        with pytest.raises(SystemExit):
            cli.main()
        told = capsys.readouterr().out
        assert "5 minutes from the first check to the last, pauses over 20 left out" in told


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"ps01": 3}', '{"ps01": {"seconds": "x", "last": 0, "checks": {}}}', '{"no": {}}']
    + ['{"ps01": {"seconds": 1, "last": 0, "checks": {"ps01/box_blur": ["25", 0.0], "ps01/x": [1.0, 0.0]}}}']
    + ["[" * 100_000, '{"ps01": {"seconds": 1%s, "last": 0, "checks": {}}}' % (400 * "0")],
)
def test_a_damaged_file_is_as_good_as_none(folder, text):
    (folder / progress.FILE).write_text(text)
    assert progress.recalled() == {}
    progress.remember(report("ps01/grayscale", 1e9, 18.0))
    assert progress.recalled()["ps01/grayscale", None].score == 18  # at most what the check is worth


def test_a_file_with_nan_is_told_in_numbers(folder):
    checks = '{"ps01/grayscale": [NaN, NaN], "ps01/box_blur": [Infinity, 0.0]}'
    (folder / progress.FILE).write_text(
        f'{{"ps01": {{"seconds": Infinity, "last": NaN, "checks": {checks}}}}}'
    )
    (told,) = progress.told_in(folder)
    assert "grayscale 0 of 18" in told and "box_blur 21 of 21" in told and "inf" not in told
    (folder / progress.FILE).write_text("{")
    assert "cannot be read" in progress.told_in(folder)[0]


def test_nothing_is_written_where_no_notebook_of_the_set_is_nor_where_it_cannot_be(folder, tmp_path):
    progress.remember(report("ps04/matmul_naive", 20.0, 20.0))
    assert not (folder / progress.FILE).exists()
    (folder / progress.FILE).mkdir()
    progress.remember(report("ps01/grayscale", 18.0, 18.0))
    assert progress.recalled() == {}
    assert {path.name for path in folder.iterdir()} == {progress.FILE, "ps01_pixels.ipynb"}


def test_only_a_person_s_own_kernel_writes_it(folder, capsys):
    grade("ps01/launch_plan", swapped)
    assert not (folder / progress.FILE).exists()
