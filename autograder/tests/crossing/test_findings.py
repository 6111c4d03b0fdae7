"""What the engine found crosses to the judge as small, checked data, and a student reads it in the table."""

import copy

import numpy as np
import pytest
from numba import cuda, float32

from warplab import crossing
from warplab.crossing.findings import MOST, of_lines
from warplab.tasks.feedback import Table, report_on
from warplab.tasks.hints import hints_for_failure

ACT = {
    "thread": [1, 0, 0],
    "block": [0, 0, 0],
    "does": "reads",
    "what": "tile[3]",
    "file": 7,
    "line": 12,
}
FINDING = {"text": "", "acts": [ACT, ACT | {"does": "writes"}]}
LANES = {"text": "", "acts": [], "lanes": [[7, 12, 10, 320]]}


def test_what_the_engine_makes_passes_the_check():
    assert crossing.checked_findings([LANES, FINDING]) == (LANES, FINDING)
    assert crossing.checked_findings([]) == ()


def broken(**changes):
    finding = copy.deepcopy(FINDING)
    finding["acts"][0] |= changes
    return [finding]


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [FINDING] * (MOST + 1),
        [FINDING | {"more": 1}],
        [{"text": "x" * 2000, "acts": []}],
        [{"text": 1, "acts": []}],
        [{"text": "", "acts": [ACT] * 3}],
        broken(does="is <b>bold</b>"),
        broken(what="x" * 300),
        broken(thread=[1, 2]),
        broken(thread=[1, 2, True]),
        broken(line=-1),
        broken(line=1.0),
        broken(block=[1, 2, np.int64(3)]),
        [LANES | {"lanes": [[7, 12, 10, 320]] * 7}],
        [LANES | {"lanes": [[7, 12, 10, 321]]}],
        [LANES | {"lanes": [[7, 0, 10, 320]]}],
        [LANES | {"lanes": [[7, 12, 0, 0]]}],
        [LANES | {"lanes": [[7, 12, 10.0, 320]]}],
        [LANES | {"lanes": [[7, 12, 10]]}],
        [LANES | {"lanes": "many"}],
    ],
)
def test_a_record_that_the_engine_does_not_make_is_refused(data):
    with pytest.raises(crossing.Refused):
        crossing.checked_findings(data)


@cuda.jit
def racing(x, total):
    table = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    table[t] = x[t] if t < x.size else float32(0)
    if t == 0:
        total[0] = table[255]


@cuda.jit
def losing(x, total):
    i = cuda.grid(1)
    if i < x.size:
        total[0] += x[i]


@pytest.mark.slow
def test_a_race_is_drawn_as_two_threads_with_their_lines():
    report = report_on("ps03/reduce_tree", racing)
    line = report.lines[0]
    (drawing,) = line.drawings
    first, second = drawing["acts"]
    assert (first["does"], first["what"]) == ("writes", "table[255]")
    assert first["source"] == "table[t] = x[t] if t < x.size else float32(0)"
    assert (second["thread"], second["does"]) == ([0, 0, 0], "reads")
    html = Table(report)._repr_html_()
    assert "nothing orders these two: they may come in either order" in html
    assert "First thread (255, 0, 0) of block (0, 0, 0) writes table[255]" in html
    assert "only a barrier makes all of them wait" in html


def test_a_warning_of_the_engine_stands_under_why_and_brings_its_hints():
    line = report_on("ps03/reduce_atomic", losing).lines[0]
    assert line.state == "lost"
    assert any(text.startswith("global-memory conflict in kernel losing") for text in line.warnings)
    assert line.hints[2] == "`cuda.atomic.add(total, 0, mine)` in the place of `total[0] += mine`"


def test_a_warning_is_told_once_in_a_table():
    html = Table(report_on("ps03/reduce_atomic", losing))._repr_html_()
    assert html.count("Look at: blocks run in any order") == 1


@cuda.jit
def tireless(x_min, y_min, step, max_iterations, out):
    col, row = cuda.grid(2)
    if col >= out.shape[1] or row >= out.shape[0]:
        return
    c_x, c_y = x_min + col * step, y_min + row * step
    x = y = 0.0
    steps = max_iterations
    for k in range(max_iterations):
        if x * x + y * y > 4.0:
            steps = min(steps, k)
        else:
            x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
    out[row, col] = steps


@pytest.mark.slow
def test_a_row_of_instructions_names_the_lines_that_issue_most_and_their_lanes():
    line = report_on("ps01/mandelbrot", tireless).lines[-1]
    (drawing,) = line.drawings
    assert drawing["kind"] == "lanes"
    most = max(drawing["acts"], key=lambda act: act["warps"])
    assert most["source"] == "for k in range(max_iterations):" and most["threads"] <= 32 * most["warps"]
    html = Table(report_on("ps01/mandelbrot", tireless))._repr_html_()
    assert "of 32 lanes active" in html and "Lines that issue most" in html


def test_lines_of_several_launches_are_added_up():
    from types import SimpleNamespace as Some

    line = Some(file="/a/b.py", line=3, warp_instructions=10, thread_instructions=320)
    other = Some(file="/a/b.py", line=4, warp_instructions=1, thread_instructions=1)
    ((key, number, warps, threads), (*_, last)) = of_lines([Some(lines=[line, other]), Some(lines=[line])])[
        0
    ]["lanes"]
    assert (number, warps, threads, last) == (3, 20, 640, 1)


@pytest.mark.parametrize(
    ("sentence", "hint"),
    [
        ("not written yet: `grayscale` is still the stub", "numbered steps"),
        ("does not compile: `rbg` is not defined (line 3)", "Where is this name set"),
        ("out-of-bounds access in kernel k, cell:4: thread", "into your formula by hand"),
        ("shared-memory race in kernel k, cell:4: thread", "Two lines are named"),
        (
            "shared-memory race in kernel k, cell:4: thread (1, 0, 0) of block (0, 0, 0) writes table[0] "
            "(cell:4) that thread (0, 0, 0) of block (0, 0, 0) writes (cell:4), with no barrier",
            "Several threads write one place",
        ),
        (
            "shared-memory race in kernel k, cell:4: thread (1, 0, 0) of block (0, 0, 0) writes table[1] "
            "(cell:4) that several threads read (cell:4), with no barrier",
            "One line is named twice",
        ),
        (
            "shared-memory race in kernel k, <cell scan>:4: thread (1, 0, 0) of block (0, 0, 0) writes "
            "table[0, 3] (<cell scan>:4) that thread (0, 0, 0) of block (0, 0, 0) writes (<cell scan>:4), ",
            "Several threads write one place",
        ),
        (
            "shared-memory race in kernel k, <cell scan>:4: thread (1, 0, 0) of block (0, 0, 0) writes "
            "table[0, 3] (<cell scan>:4) that several threads read (<cell scan>:4), with no barrier",
            "One line is named twice",
        ),
        (
            "uninitialised read in kernel k, <cell k>:5: thread (0, 0, 0) of block (0, 0, 0) takes the value "
            "of lane 1 of its warp, which has no part in this shuffle; thread (0, 0, 0) of block (0, 0, 0) ",
            "it is not there",
        ),
        ("TypeError: spot_interval() takes 1 positional argument but 4 were given", "has no partner"),
        ("`undiverge` takes 1 argument, and 3 are passed: x, steps, out", "has no partner"),
        ("CommError: rank 0 cannot receive from rank -1: the ranks are 0 to 1", "neighbour of the last one"),
        ("AttributeError: 'DeviceClient' object has no attribute 'copy_in': a", "names in that list"),
        ("the numbers of a device array are not on the host: `device.launch(", "Who should touch"),
        ("CommError: deadlock: rank 0 waits for all ranks to call all_reduce of", "has it returned"),
        ("invalid launch in kernel k: 66,560 bytes of static shared memory; the limit", "bytes has one"),
        ("IndexError: list index out of range (line 3", "What is each name in it"),
        ("ValueError: operands could not be broadcast together with shapes (5,) (9,)", "`.shape` of each"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", "`.shape` of each"),
        ("does not compile: a Triton kernel has no `np.exp`: `tl.exp` does it to a whole block", "has `tl`"),
        ("running the kernel: ran longer than the limit of 30 s", "Which loop has no end"),
        (
            "global-memory conflict in kernel k, cell:9: thread (0, 0, 0) of block (0, 0, 0) writes element "
            "[0] of argument 'out' (float32[768]) that thread (0, 0, 0) of block (2, 0, 0) writes (cell:9)",
            "for thread 0 of block 1",
        ),
        ("barrier in kernel k, cell:4: threads of a block have left", "wait at one barrier"),
        ("shuffle in kernel k, cell:4: the mask of thread (0, 0, 0)", "it is not there"),
        ("uninitialised read in kernel k", "Which thread should have filled"),
        ("barrier divergence in kernel k", "wait at one barrier"),
        ("`device.launch` asks for a grid of (0,); dimension x", "Work out grid and block"),
        ("device.empty was called 257 times", "in every round of a loop"),
        ("device.launch passes device arrays and numbers to a kernel, nothing else", "Which one is None"),
        ("AttributeError: 'Handle' object has no attribute 'sum' (line 4)", "Who should touch"),
        ("invalid launch in kernel k: argument number 1 is a Handle; pass arrays", "Who should touch"),
        ("no progress in kernel k", "Which loop has no end"),
        ("CommError: deadlock: rank 0 waits", "message that nobody sends"),
        ("`out` was never written to, only added to", "Does any line of yours assign"),
        ("global-memory conflict in kernel k", "Two threads meet"),
        ("stopped after 30 s of computing", "Which loop has no end"),
        ("input `w` was changed; it must stay", "writes into what the function was given"),
        ("`six_nd` returned one value, expected 3: rule", "how many values"),
        (
            "global-memory conflict in kernel layer, cell:11: thread (0, 0, 0) of block (1, 0, 0) writes "
            "element [8] of argument 'y' that thread (31, 0, 0) of block (1, 0, 0) writes (cell:11), and",
            "Two threads of one block",
        ),
        (
            "global-memory conflict in kernel layer, cell:11: thread (0, 0, 0) of block (0, 0, 0) writes "
            "element [8] of argument 'y' that thread (0, 0, 0) of block (1, 0, 0) writes (cell:11), and",
            "for thread 0 of block 1",
        ),
        ("`done`: nothing was returned (None)", "how many values"),
        ("`short`: got a bool (False), expected", "their type is not"),
        ("`master`: dtype is float64, expected", "their type is not"),
        ("`out` of rank 0 has shape (4,), expected (4, 5)", "Print the shape"),
        ("`losses` has 33 numbers, expected 20 numbers", "too many or missing"),
        ("`replicas` has a single number, no row, expected 10 numbers", "take the place of the last"),
        ("`card`: got a dict, expected a whole number", "the thing itself"),
        ("`verdict`: got a str ('SIZES'), expected a whole number", "in quotation marks"),
        ("launched the work 46 times, asked for 21 samples and", "Count the launches"),
        ("the work was launched 2 times, not once", "Count the launches"),
        ("what goes into each of the 5 layers is kept, as `plain` keeps it", "still held"),
        ("RuntimeError: element 0 of tensors does not require grad", "has noted nothing"),
        ("RuntimeError: function AgainBackward returned an incorrect number of gradients", "How many inputs"),
        ("ran longer than the limit of 8 s", "Which loop has no end"),
        ("`hours` does not exist: no cell defines it", "Which cell of yours defines"),
        ("`hours` must be a function, and it is None", "Which cell of yours defines"),
        ("your witness: `x` has 9 rows; the job allows 1 to 8", "Which limit of the job"),
        ("ZeroDivisionError: division by zero", "does the docstring allow it"),
        ("KeyError: 'vocab' (line 3", "What is each name in it"),
        ("a device array cannot be indexed on the host: pass", "Who should touch"),
        ("CommError: recv from rank 1: 8 numbers", "of which dtype"),
        ("VirtualDeviceError: device.empty takes a positive", "in use at the same time"),
        (
            "VirtualDeviceError: copy 1 in stream 1 and launch 1 in stream 2 are not ordered",
            "Two operations",
        ),
        (
            "vote in kernel k, k.cu:1: thread (8, 0, 0) executes it, and its own mask, 0x0",
            "bit for each lane",
        ),
        ("NameError: name 'softmax' is not defined", "What is each name in it"),
        ("ValueError: The truth value of an array", "What is each name in it"),
    ],
)
def test_a_failure_of_a_kind_that_every_task_knows_has_hints_of_its_own(sentence, hint):
    assert hint in hints_for_failure(sentence)[0]


def test_the_same_hints_stand_at_the_first_row_alone():
    report = report_on(
        "ps11/autoscale", lambda loads, target, least, most, window: [least] * (len(loads) + 1)
    )
    first, *others = report.lines
    assert first.hints and not any(line.hints for line in others) and "numbers, expected" in others[0].reason


def test_a_wrong_value_has_the_hints_of_its_row():
    assert hints_for_failure("`out` is wrong at 3 of 9 places, all of column 0; first at [0, 0]") is None
