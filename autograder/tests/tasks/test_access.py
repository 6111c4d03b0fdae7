"""The line of a kernel that costs most: found where points are lost, told in a sentence, drawn.

And nothing else crosses with it.
"""

import json
import re
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from corpus_files import entry_of
from grading import grading as made_grading
from grading import hand_in, make_course, notebook

import warplab
from autograder.judge.attempts import NotebookStep, run_all
from autograder.judge.process import Process
from autograder.sandbox import Limits, Unsafe
from autograder.sandbox.messages import Done
from warplab import crossing
from warplab.crossing.costliest import MAX_LINE, AccessRecord, access_costs, checked_access, costliest
from warplab.crossing.explain import Refused
from warplab.hardware.device import engine_target
from warplab.simt.counters.watch import Costliest
from warplab.simt.frontends.launch import LaunchContext
from warplab.tasks import registry, scoring
from warplab.tasks.feedback import Table, report_on
from warplab.tasks.rubric import Line, Report


@cache
def submitted(name):
    """(report, the student's text) of one entry of the corpus, checked as in a notebook."""
    submission = entry_of(name)
    task = registry.get(submission.task)
    return report_on(task.name, submission.namespace()[task.entry]), submission.source()


def row(name, key):
    """What the notebook tells beneath one row: its text without markup, and the row's HTML."""
    report, _ = submitted(name)
    html = Table(replace(report, lines=tuple(line for line in report.lines if line.key == key)))._repr_html_()
    figure = re.search(r"<figure.*</figure>", html, re.DOTALL)[0]
    return re.sub(r"<[^>]+>", "", re.sub(r"<svg.*</svg>|<br>", " ", figure, flags=re.DOTALL)), figure


# which line, and what is said of it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "told"),
    [
        # 88 x 56 numbers are 176 warps, half of them of 24 lanes: 88 loads of 4 sectors and 88 of 3, and a
        # store of a sector a number: 616 + 4,928
        (
            "ps05/transpose/wrong_naive",
            "sectors",
            "out[col, row] = x[row, col] 32 lanes write 32 sectors of out where 4 would do. "
            "176 such requests; all 5,544 sectors come from this line.",
        ),
        # 88 stores of 32 lanes with 31 conflicts and 88 of 24 with 23 are 4,752, and 616 sectors; the load
        # is 616
        (
            "ps05/transpose/wrong_no_padding",
            "banks",
            "out[row, col] = tile[tx, ty] 32 lanes read shared memory in 32 wavefronts where 1 would do. "
            "176 such requests; 5,368 of the 5,984 bank conflicts and sectors come from this line.",
        ),
        # a block is 16 x 16, so a warp writes 2 numbers in each of 16 rows; 80 x 80 pixels are 200 warps
        (
            "ps01/grayscale/wrong_swapped_axes",
            "coalesced",
            "32 lanes write 16 sectors of out where 4 would do. "
            "200 such requests; all 3,200 sectors written come from this line.",
        ),
        # 60 warps, 88 steps, a load of a and one of b in each; that the loop is unrolled must not show
        (
            "ps04/matmul_tiled/wrong_naive_kernel",
            "requests",
            "acc += a[row, k] * b[k, col] Warps make 5,280 such requests. "
            "In this one 32 lanes read 2 sectors of b; "
            "all 10,560 load requests come from this line.",
        ),
        # two columns' worth of conflicts, neither a quarter of what is counted: together they are
        (
            "ps05/echoes/wrong_down_the_columns_twice",
            "banks",
            "table[32 * lane + k] = 0 32 lanes write shared memory in 32 wavefronts where 1 would do. "
            "128 such requests; 3,968 of the 16,272 conflicts, sectors, sums handed in come from this line.",
        ),
        # an atomic for each echo: what it hands in counts, not the echo that it reads
        ("ps05/echoes/cheat_atomics_in_memory", "banks", "cuda.atomic.add(out, "),
        # addresses that are a number off waste one sector of five, less than a quarter: the requests are too
        # many, not too wide
        (
            "ps05/stencil_shared/wrong_five_loads",
            "sectors",
            "such requests. In this one 32 lanes read 5 sectors of x;",
        ),
        # CUDA C++: the line of the string, not of the cell
        ("ps07/wmma_matmul/wrong_one_tile_after_the_other", "reuse", ": load_matrix_sync(a, A + row * lda"),
    ],
)
def test_the_row_shows_the_line_that_costs_most_and_what_would_do(name, key, told):
    text, figure = row(name, key)
    assert told in text
    assert figure.count("<svg") == 1 and text.startswith("Line ")
    wide = float(re.search(r'viewBox="\S+ \S+ (\S+)', figure)[1])
    letters = min(map(float, re.findall(r'font-size="([\d.]+)"', figure))) / wide
    assert 300 * letters > 6.5  # pixels on a phone, where a table of checks leaves the picture some 300
    assert 560 * letters < 14  # and nowhere larger than the text beside it


def test_the_line_is_the_one_of_the_students_file():
    report, source = submitted("ps05/transpose/wrong_naive")
    access = next(line.access for line in report.lines if line.access)
    assert source.split("\n")[access["line"] - 1].strip() == access["source"] == "out[col, row] = x[row, col]"
    assert f"Line {access['line']}, out[col, row] = x[row, col]: 32 lanes write 32 sectors" in repr(
        Table(report)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["correct_swizzle", "wrong_blocks_not_exchanged"])
def test_full_points_and_a_wrong_result_show_no_plot(name):
    report, _ = submitted(f"ps05/transpose/{name}")
    assert all(line.access == {} for line in report.lines)
    assert "of one warp" not in Table(report)._repr_html_()


def test_a_line_that_wastes_nothing_is_not_blamed_for_a_little_too_much():
    report, _ = submitted("ps03/reduce_tree/wrong_two_atomics")  # 8 additions more beside 128 loads
    line = next(line for line in report.lines if line.key == "atomics")
    assert line.state == "partial" and line.access == {}


def test_the_same_picture_is_drawn_once_in_a_table():
    html = Table(submitted("ps05/transpose/wrong_naive")[0])._repr_html_()
    assert (html.count("<figure"), html.count("<svg")) == (2, 1)


WIDER_AND_WIDER = """
extern "C" __global__ void wider_and_wider(const float* x, float* out) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 32) tile[i] = x[i];
    __syncthreads();
    float total = 0;
    #pragma unroll 1
    for (int step = 0; step < 4; step++)
        if (t < 16 || step > 0) total += tile[(t << step) & 255];
    out[t] = total;
}"""


def test_of_a_line_that_runs_often_the_costliest_request_is_kept():
    launcher = warplab.cuda_kernel(WIDER_AND_WIDER, "wider_and_wider")[1, 32]
    context = LaunchContext(engine_target(), (counters := Costliest(),))
    launcher.run_on_engine((np.zeros(256, np.float32), np.zeros(32, np.float32)), context)
    reads = [
        sample for sample in counters.samples.values() if (sample.space, sample.kind) == ("shared", "read")
    ]
    assert [(len(sample.lanes), sample.cost) for sample in reads] == [
        (32, (8, 1))
    ]  # lanes 8 words apart: 4 banks of 8 words each


def test_what_only_the_assembler_knows_blames_no_line():
    assert access_costs(0, None, Costliest(), ("registers", "warp_instructions", "atomics.lanes")) == []
    assert costliest([], {}) == {}


# what crosses from the executor


def order_of(name="ps05/transpose", submission="wrong_naive", change=lambda ptx: ptx):
    """The judge's order for the first structure row of a task, with the PTX changed."""
    task = registry.get(name)
    case = next(case for case in task.cases(0) if task.counts_of(case))
    module = crossing.CROSSINGS[task.crossing]
    entry = entry_of(f"{name}/{submission}").namespace()[task.entry]
    answer = module.answer(module.question(task, case), (task.entry, None), entry, None, None)
    answer["kernel"]["modules"] = [change(text) for text in answer["kernel"]["modules"]]
    return module.finish(task, case, answer, None)


def test_an_order_says_what_its_row_counts_and_nothing_else_is_watched():
    order = order_of()
    assert order.counts == ("global_memory.sectors",)
    assert crossing.Order.from_plain(order.plain()).counts == order.counts
    assert crossing.execute(replace(order, counts=())).access == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda ptx: re.sub(r"\.loc\t(\d+) \d+", r".loc\t\1 99999999999999999999", ptx),
        lambda ptx: re.sub(r'\.file\t(\d+) "[^"]*"', r'.file\t\1 "/tmp/<script>alert(1)</script>"', ptx),
        lambda ptx: re.sub(
            r'\.file\t(\d+) "[^"]*"', r'.file\t\1 "/dev/zero"', ptx
        ),  # whoever reads its lines never ends
        lambda ptx: re.sub(r"\.file[^\n]*", "", ptx),
        lambda ptx: re.sub(r"\.loc[^\n]*", "", ptx),
        lambda ptx: ptx.replace("\tret;", "\t.loc\t1 7 1\n" * 200_000 + "\tret;", 1),
    ],
    ids=["absurd lines", "markup as a file", "a file without end", "no files", "no lines", "200,000 lines"],
)
def test_whatever_the_ptx_says_of_lines_and_files_the_record_is_small_and_plain(change):
    order = order_of(change=change)
    result = crossing.execute(order)
    assert result.error is None
    access = checked_access(json.loads(json.dumps(result.access)), order.buffers)
    assert set(access) == {*AccessRecord.__struct_fields__} and 0 <= access["line"] <= MAX_LINE
    assert len(json.dumps(access)) < 1000 and "script" not in json.dumps(access)
    assert access["counted"] == 5544


def test_a_million_lines_are_more_than_a_kernel_may_have():
    with pytest.raises(Refused, match="characters of PTX; the limit is"):
        order_of(change=lambda ptx: ptx.replace("\tret;", "\t.loc\t1 7 1\n" * 1_000_000 + "\tret;", 1))


def test_a_line_without_a_number_is_drawn_without_one():
    task = registry.get("ps05/transpose")
    order = order_of(change=lambda ptx: re.sub(r"\.loc[^\n]*", "", ptx))
    case = next(case for case in task.cases(0) if task.counts_of(case))
    report = scoring.judge(task, [case], [crossing.execute(order).of(case)])
    assert (
        "The line that costs most<br><strong>32 lanes write 32 sectors of out" in Table(report)._repr_html_()
    )


GOOD = {"line": 8, "file": 5, "space": "global", "kind": "write", "array": "out", "width": 4}
GOOD |= {"lanes": [0, 1], "offsets": [0, 384], "requests": 192, "counted": 6912, "wasted": 5376}


@pytest.mark.parametrize(
    "change",
    [
        *({"line": line} for line in (-1, MAX_LINE + 1, True, "8", None)),
        {"file": 1e9},
        {"requests": 1 << 60},
        {"counted": float("inf")},
        {"wasted": -1},
        {"width": 0},
        {"width": 1 << 20},
        {"space": "local"},
        {"space": ["global"]},
        {"kind": {}},
        *({"array": array} for array in ("<script>", "../../etc/passwd", ["out"])),
        *({"lanes": lanes} for lanes in ([], [0, 32], [1, 0], [0, 0], [0], 2)),
        {"lanes": list(range(33)), "offsets": [0] * 33},
        *({"offsets": offsets} for offsets in ([0, -4], [0, 1 << 60], [0, None], {"0": 0})),
        {"score": 20},
    ],
)
def test_a_forged_record_is_refused(change):
    assert checked_access(dict(GOOD), ("x", "out")) == GOOD and checked_access({}, ("x", "out")) == {}
    with pytest.raises(Refused, match="the record of an access"):
        checked_access(GOOD | change, ("x", "out"))


@pytest.mark.slow
def test_an_executor_that_forges_a_record_is_lost(monkeypatch):
    honest = Process.ask

    def forged(self, message, allowed):
        reply = honest(self, message, allowed)
        forgery = GOOD | {"line": "<b>8</b>"}
        return msgspec.structs.replace(reply, access=forgery) if type(reply) is Done else reply

    monkeypatch.setattr(Process, "ask", forged)
    task = registry.get("ps05/transpose")
    cases = {task.name: [case for case in task.cases(0) if task.counts_of(case)]}
    source = entry_of("ps05/transpose/wrong_naive").source()
    steps = NotebookStep("answer", "cell", source=source), NotebookStep("test", "task", task=task.name)
    run = run_all(list(steps), cases, Unsafe(), Limits())
    assert run.status == "crashed" and all(
        "access from the executor is malformed" in outcome.error for outcome in run.outcomes[task.name]
    )
    lines = scoring.judge(task, cases[task.name], run.outcomes[task.name]).lines
    assert all(line.points == 0 and not line.access for line in lines)


def test_the_farthest_offsets_that_pass_can_be_drawn():
    far = GOOD | {"lanes": list(range(32)), "offsets": [lane << 40 for lane in range(32)], "width": 64}
    passed = checked_access(far, ("out",)) | {"of": 1.0, "unit": "sectors"}
    line = Line("k", "structure", "Loads", 0.0, 2.0, "lost", access=passed)
    html = Table(Report("t", (line,)))._repr_html_()
    assert "64 sectors of 32 bytes touched in out" in html and len(html) < 40_000


# the page that the instructor returns

TRANSPOSE = '''# %% [markdown]
# # A set of one kernel
# %%
from numba import cuda
from warplab.tasks.feedback import grade
# %% solution="transpose"
@cuda.jit
def transpose(x, out):
    """out[col, row] = x[row, col]."""
    ### BEGIN SOLUTION
    ### END SOLUTION
# %% grade="ps05/transpose"
grade("ps05/transpose", transpose)
'''
ANSWER = """# <b>my</b> answer
@cuda.jit
def transpose(x, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]: out[col, row] = x[row, col]  # <script>alert(1)</script>
"""


@pytest.mark.slow
def test_the_feedback_page_shows_the_students_own_line_with_its_picture_and_fetches_nothing(tmp_path):
    root, assignment = make_course(tmp_path / "course", TRANSPOSE)
    hand_in(tmp_path / "submitted", "ada", notebook(assignment, transpose=ANSWER))
    folders, how = (root, "ps01", tmp_path / "submitted", tmp_path / "out"), {"seconds": 20, "seed": 3}
    grading = made_grading(*folders, sandbox=Unsafe(), **how)
    (graded,) = grading.rows()
    assert graded.status == "graded"
    for _ in range(2):  # graded, and then read back from the stored result
        page = (tmp_path / "out/feedback/ada/ps01/ps01_tiny.html").read_text()
        assert "32 lanes write 32 sectors of out where 4 would do." in page
        assert "Line 5: <code" in page
        assert "out[col, row] = x[row, col]  # &lt;script&gt;alert(1)&lt;/script&gt;</code>" in page
        assert page.count("<svg") == 1 and "<script" not in page and "<b>" not in page
        assert not re.search(r'(?:src|href)="(?!#)|url\(|@import', page)
        again = made_grading(*folders, sandbox=Unsafe(), **how)
        again.version = grading.version
        assert [(row.score, row.fresh) for row in again.rows()] == [(graded.score, False)]
