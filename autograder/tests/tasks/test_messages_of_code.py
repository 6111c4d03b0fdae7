"""What a student is told of code that does not run: by its kind, with the line, and with hints that fit."""

import linecache
import re
import textwrap
from pathlib import Path

import pytest
import yaml
from numba import cuda, float32

from warplab import crossing
from warplab.crossing import endless
from warplab.crossing.device_client import DeviceClient
from warplab.simt import toolchain
from warplab.simt.frontends.cuda_cpp import CudaKernel
from warplab.simt.toolchain.compiler_notes import translated
from warplab.simt.toolchain.nvrtc import CompileError
from warplab.tasks.declaration import Task
from warplab.tasks.feedback import Table, report_on
from warplab.tasks.hints import _kinds, hints_for, hints_for_failure
from warplab.tasks.rubric import explained_by

WORDS = yaml.safe_load((Path(toolchain.__file__).parent / "compiler_words.yml").read_text(encoding="utf-8"))
COMPILERS = [name for name in WORDS if name not in ("types of numba", "operators")]
BEGINS = {"nvrtc": "compile error in kernel k: k.cu(3): error: x\n  ", "python": "TypeError: x: "}


def defined(source, name, **names):
    """The function of a cell with this text; its lines can be quoted."""
    source, cell = textwrap.dedent(source).lstrip("\n"), f"<cell {name}>"
    linecache.cache[cell] = len(source), None, source.splitlines(keepends=True), cell
    namespace = {"cuda": cuda, "float32": float32} | names
    exec(compile(source, cell, "exec"), namespace)
    return namespace[name]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_translated_error_has_hints_of_its_kind(compiler):
    unknown = hints_for_failure("does not compile: nobody knows why")
    for entry in WORDS[compiler]:
        told = BEGINS.get(compiler, "does not compile: ") + entry["means"].format("A", "B", "C")
        assert hints_for_failure(told) not in (None, unknown), entry["means"]
    assert len(unknown) == 1  # of what nobody has translated there is nothing to say in three steps
    assert len({hints for says, hints in _kinds() if "compile" in says.pattern}) >= 12


def test_a_line_of_the_stub_that_was_left_is_told_with_its_line_wherever_it_stands():
    kernel = """
        @cuda.jit
        def grayscale(image, out):
            col, row = cuda.grid(2)
            {0}
            if row < out.shape[0] and col < out.shape[1]:
                out[row, col] = image[row, col, 0]
            {1}
        """
    stub = "raise NotImplementedError()"
    for number, places in ((4, (stub, "")), (7, ("", stub))):
        row = report_on("ps01/grayscale", defined(kernel.format(*places), "grayscale")).lines[0]
        assert row.reason == (
            f"line {number} is `raise NotImplementedError()` still, which stops your code: delete that line "
            "of the stub"
        )
        assert "whoever comes to it stops there" in row.hints[0]
    plan = """
        def launch_plan(width, height, block):
            blocks = -(-width // block[0])
            for k in range(3):
                blocks += 0
            raise NotImplementedError()
        """
    reason = report_on("ps01/launch_plan", defined(plan, "launch_plan")).lines[0].reason
    assert reason.startswith("line 5 is `raise NotImplementedError()` still")


def test_a_library_that_lacks_something_is_no_stub():
    def reached():
        raise NotImplementedError("no kernel for this dtype")

    reached.__code__ = reached.__code__.replace(co_filename="/x/site-packages/torch/nn.py")
    source = "def caller(reached):\n    reached()\n"
    caller = defined(source, "caller")
    try:
        caller(reached)
    except NotImplementedError as error:
        assert crossing.explain(error).startswith("NotImplementedError: no kernel for this dtype (line 2")


@pytest.mark.slow
def test_a_kernel_without_end_is_stopped_by_its_own_time_at_its_own_line(monkeypatch):
    spin = """
        @cuda.jit
        def reduce_tree(x, out):
            table = cuda.shared.array(256, float32)
            t = cuda.threadIdx.x
            table[t] = t
            stride = 128
            while stride > 0:
                cuda.syncthreads()
        """
    assert endless.MOST_S == 10
    monkeypatch.setattr(Task, "most_s", 0.3)
    rows = report_on("ps03/reduce_tree", defined(spin, "reduce_tree")).lines
    where = (
        r"^right.*: stopped after 0\.3 s of computing in kernel reduce_tree, <cell reduce_tree>:[78]: .*\?$"
    )
    assert re.search(where, rows[0].reason) and "Which loop has no end" in rows[0].hints[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tl.store(out, vv)", "`vv` is not defined (line 4 of the kernel: `tl.store(out, vv)`)"),
        ("out[i] = v", "a pointer takes no index"),
        ("tl.store(out + tl.arange(0, 100), 1)", "a block has a power of two elements"),
        ("tl.store(out + i, tl.load(x + tl.arange(0, 64)) + v)", "two blocks of different sizes"),
        ("if i < n: tl.store(out + i, v)", "an `if` asks one number, and this is a whole block"),
        ("a, b = tl.program_id(0)", "one value cannot be taken apart"),
        ("v = [j for j in range(3)]", "and no more of Python"),
        ("tl.store(out + i, v, mask=i < n & i < 9)", "put brackets round each comparison"),
        ("tl.dot(*[tl.zeros((8, 8), tl.float16)] * 2)", "at least 16 numbers along k"),
        ("tl.dot(*[tl.zeros((16, 16), tl.float16)] * 3)", "the third block must have the type of the sums"),
    ],
)
def test_what_triton_refuses_is_told_in_words_with_its_line(line, words):
    triton = pytest.importorskip("triton")
    import torch

    source = f"""
        @triton.jit
        def k(x, out, n, B: tl.constexpr):
            i = tl.arange(0, B)
            v = tl.load(x + i)
            {line}
        """
    kernel = defined(source, "k", triton=triton, tl=triton.language)
    with pytest.raises(triton.compiler.errors.CompilationError) as raised:
        kernel[(1,)](torch.zeros(64), torch.zeros(64), 64, B=32)
    told = crossing.explain(raised.value)
    assert told.startswith("does not compile: ") and words in told and f"`{line[:12]}" in told


def test_what_nvrtc_refuses_is_told_with_its_line_and_what_it_means():
    for line, words in {
        "y[0] = x;": "an index is missing, or one too many",
        "y[0] = x[0]": 'expected a ";"',
        "x[0] = 1.0f;": "cannot be written: a const array",
        "y[0] = z[0];": '"z" is undefined',
        "y[0] = n[0];": "a single number is given an index",
    }.items():
        with pytest.raises(CompileError) as raised:
            CudaKernel(
                f'extern "C" __global__ void k(const float *x, float *y, int n)\n{{\n{line}\n}}\n', "k"
            )
        assert words in str(raised.value) and "k.cu(" in str(raised.value), str(raised.value)
        assert hints_for_failure(str(raised.value)) != hints_for_failure("compile error")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "return t",
            "a kernel returns nothing: write the result into one of its arrays (line 5: `return t`)",
        ),
        (
            "a, b = x.shape",
            "consists of 1: give each part a name, or take one by its number, as in `image.sha",
        ),
        ("y = x @ x", "write a loop over single numbers (line 5: `y = x @ x`)"),
        ("at = {'x': t, 'y': x[0]}; t = at['x']", "no dictionaries and no sets: use arrays (line 5: `at = {"),
        (
            "while t > 0: t /= 2",
            "`t` is a whole number in one place and a float in another: in a kernel a name",
        ),
    ],
)
def test_what_numba_refuses_is_told_with_the_line_of_a_notebooks_cell(line, told):
    head = '@cuda.jit\ndef stride(x, out):\n    """y = x @ x."""\n    t = cuda.grid(1)\n'
    source = f"{head}    {line}\n    out[0] = t\n"
    cell = "/tmp/ipykernel_7/89.py"  # numba names it by a path from here
    linecache.cache[cell] = len(source), None, source.splitlines(keepends=True), cell
    names = {"cuda": cuda}
    exec(compile(source, cell, "exec"), names)
    reason = report_on("ps00/stride", names["stride"]).lines[0].reason
    assert told in reason and reason.endswith(f"(line 5: `{line}`)"), reason


def undiverged(half, bound):
    """The rows on an even and on an odd number of stars, of a kernel that takes ``half`` of them as even."""
    kernel = f"""
        @cuda.jit
        def undiverge(x, steps, out):
            t, half = cuda.grid(1), {half}
            star = 2 * t if t < half else 2 * (t - half) + 1
            if t < {bound}:
                v = x[star]
                for _ in range(steps):
                    v = v * v + 0.25 if t < half else 1 / (1 + v)
                out[star] = v
        """
    return report_on("ps02/undiverge", defined(kernel, "undiverge")).lines[:2]


def test_an_error_that_comes_in_a_later_case_of_a_row_is_told_once():
    even, odd = undiverged("(x.size + 1) // 2", "9_999_999")
    assert even.reason.startswith("even, 64 stars") and "out-of-bounds access" in even.reason
    assert odd.reason == f"stopped by the same error as {even.title!r}" and not odd.hints


@pytest.mark.slow
def test_what_goes_wrong_where_another_row_is_right_gets_the_hints_of_its_own_row():
    for bound, told in (("2 * half", "`out` was never written to"), ("x.size", "out-of-bounds access")):
        even, odd = undiverged("x.size // 2", bound)
        assert even.state == "full" and told in odd.reason
        assert (
            odd.hints == hints_for("ps02/undiverge", "odd")
            and "how many of them have an even" in odd.hints[0]
        )


def test_what_is_refused_outside_the_students_code_has_no_line_of_ours():
    source = "def answer(refuse):\n    raise refuse('`q`: dtype is float64')\n"
    cell = "/x/autograder/sandbox/student.py"
    names = {}
    exec(compile(source, cell, "exec"), names)
    with pytest.raises(crossing.Refused) as raised:
        names["answer"](crossing.Refused)
    raised.value.__traceback__ = raised.value.__traceback__.tb_next  # without this test's own frame
    assert crossing.explain(raised.value) == "`q`: dtype is float64"


def test_what_a_cell_stopped_with_has_the_hints_of_its_kind():
    before = "`wmma` does not exist: its cell stopped with "
    error = 'compile error in kernel wmma: wmma.cu(25): error: expected a ";"\n  for'
    assert hints_for_failure(before + error) == hints_for_failure(error) != hints_for_failure(before)
    assert "quotation mark" in hints_for_failure(f"{before}SyntaxError: expected ':' (line 2: `if x`)")[0]


def test_what_a_device_refuses_is_told_with_the_line_that_asked():
    source = """
        def scan(device, x, out):
            total = device.empty(4, "int32")
            total[0] += 1
        """
    reason = report_on("ps03/scan", defined(source, "scan")).lines[0].reason
    assert "cannot be indexed on the host" in reason and reason.endswith("(line 3: `total[0] += 1`)")


def test_a_form_of_ptx_that_is_miscounted_is_quoted():
    row = report_on("ps08/read_ptx", lambda ptx: (ptx.count("\tld.global"), 0, 0)).lines[0]
    assert row.reason.startswith("loads, only `@!%p2 ld.global.u32 %r3, [%rd30];`")
    assert "expected 1" in row.reason


def test_the_row_that_explains_the_others_is_named_first():
    wrong = """
        @cuda.jit
        def grayscale(image, out):
            col, row = cuda.grid(2)
            if row < out.shape[0] and col < out.shape[1]:
                out[row, col] = 1
        """
    report = report_on("ps01/grayscale", defined(wrong, "grayscale"))
    title = report.lines[0].title
    told = [line for line in report.lines if explained_by(line.reason) == title]
    assert told and all(not line.hints and "put" in line.reason for line in told)
    headline = repr(Table(report)).splitlines()[0]
    assert f"begin with {title!r}: " in headline and headline.endswith(" lost to it")


def test_what_a_device_has_is_told_whole():
    said, _ = translated("python", "'DeviceClient' object has no attribute 'copy_in'")
    has = {name for name in dir(DeviceClient) if not name.startswith("_")}
    assert set(re.findall(r"`(\w+)`", said)) == has


FILL = "@cuda.jit\ndef fill(x, out):\n    out[0] = x[0]\n\ndef scan(device, x, out):\n    "
SHUFFLE = "@cuda.jit\ndef reduce_atomic(x, total):\n    total[0] = cuda.shfl_down_sync(x[0], 1)\n"


@pytest.mark.parametrize(
    ("task", "source", "words"),
    [
        (
            "ps03/scan",
            f"{FILL}fill[1, 256](x, out)",
            "`device.launch(kernel, grid, block, ...)` runs a kernel",
        ),
        ("ps03/scan", f"{FILL}device.launch(fill, 1, 256, x, [0])", "argument number 2 is of type list"),
        ("ps03/reduce_atomic", SHUFFLE, "the first is the mask of the lanes that take part"),
    ],
)
def test_what_is_missing_in_a_call_is_told(task, source, words):
    entry = defined(source, task.partition("/")[2])
    assert words in report_on(task, entry).lines[0].reason


@pytest.mark.parametrize("use", [lambda device, *_: device[0], lambda device, *_: device.synchronize()])
def test_what_a_device_of_host_code_is_not_is_told(use):
    assert "`device` is no array, and has `empty`, `zeros`" in report_on("ps13/linear", use).lines[0].reason
