"""The engine writes Python for the PTX that a student's process hands over:
no text of that PTX may become code.

Whatever the PTX says, the generated program is held to a list of what it may consist of: assignments to its
own names, calls into the engine's modules, no import, no name of Python's own, no attribute that begins with
an underscore.
"""

import ast
import random
import re

import numpy as np
import pytest

from warplab.crossing import Order, execute
from warplab.crossing.orders import Empty, Kernel, LaunchStep
from warplab.simt.engine import translate

OURS = re.compile(
    r"(v|special|c|kept)_\w+|memory|group|registers|got|parts|total|carry|compared|pair|mask|bool|"
    + "|".join([*translate.NAMES, *translate.DTYPES])
)
STATEMENTS = (ast.Assign, ast.Expr, ast.Return, ast.Pass)
EXPRESSIONS = (
    *(ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.Subscript, ast.Slice, ast.Tuple, ast.keyword),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop, ast.Load, ast.Store),
)
BODY = """
.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 0;
.visible .entry k(.param .u64 out, .param .u32 n)
{
.reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<3>; .reg .f32 %f<4>;
.file 1 "kernel.cu"
.loc 1 1 1
ld.param.u64 %rd1, [out];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
setp.lt.u32 %p1, %r2, %r1;
@!%p1 bra $done;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd1, %rd2;
cvt.rn.f32.u32 %f1, %r2;
fma.rn.f32 %f2, %f1, 0f40000000, %f1;
cvt.rzi.u32.f32 %r3, %f2;
st.global.u32 [%rd3], %r3;
$done:
ret;
}
"""
PAYLOADS = (
    "__import__('os')._exit(0)",
    "(external.re.sys.modules)",
    "memory.machine.__class__",
    "'+str(memory)+'",
    '"+str(memory)+"',
    "{0.__class__}",
    "%s%n{memory}",
    "\\n    import os",
    "\n    import os\n    ",
    "\r    import os",
    "\x0c\x0bimport os",
    "\u2028import os",
    "lambda:0",
    "k0]=[0",
    "#",
    "é",
    "²",
    "__class__",
    "0x1f if memory else 0",
    "1_000",
    "1e400",
    "0" * 5000,
    "[[[[",
    "}}}}",
    "::",
    "np.load",
    "\0",
)


def hand_checked(code):
    """Raise AssertionError for anything in a generated program that is not the engine's own."""
    for function in ast.parse(code).body:
        assert isinstance(function, ast.FunctionDef) and re.fullmatch(r"block_\d+", function.name)
        assert [one.arg for one in function.args.args] == ["memory", "group", "registers"]
        for statement in function.body:
            assert isinstance(statement, STATEMENTS), ast.dump(statement)[:200]
            for node in ast.walk(statement):
                assert isinstance(node, STATEMENTS + EXPRESSIONS), ast.dump(node)[:200]
                if isinstance(node, ast.Name):
                    assert OURS.fullmatch(node.id), node.id
                if isinstance(node, ast.Attribute):
                    assert not node.attr.startswith("_"), node.attr


@pytest.fixture
def programs(monkeypatch):
    """Every program that the engine generates passes the check before it runs.

    The fixture is the list of them.
    """
    seen = []

    def checked(code, filename, mode):
        hand_checked(code)
        seen.append(code)
        return compile(code, filename, mode)

    monkeypatch.setattr(translate, "compile", checked, raising=False)
    return seen


def run(*modules, entry="k"):
    """Execute the PTX as the executor would; returns the Result.

    An AssertionError of the check is not swallowed.
    """
    kernel = Kernel("k", entry, tuple(modules), "c")
    order = Order(
        "sm_90",
        (kernel,),
        {"out": Empty((8,), "int32")},
        (LaunchStep(0, (1, 1, 1), (8, 1, 1), 0, ("out", ("int32", 8))),),
        ("out",),
    )
    result = execute(order)
    assert "AssertionError" not in (result.error or ""), result.error
    return result


def test_the_kernel_of_this_file_runs_and_its_program_passes(programs):
    result = run(BODY)
    assert result.error is None
    np.testing.assert_array_equal(result.outputs["out"], 3 * np.arange(8))
    assert programs


@pytest.mark.parametrize(
    "code",
    [
        "def block_0(memory, group, registers):\n    v_r1 = __import__('os')\n",
        "def block_0(memory, group, registers):\n    v_r1 = external.re.__class__\n",
        "def block_0(memory, group, registers):\n    import os\n",
        "def block_0(memory, group, registers):\n    v_r1 = (lambda: 0)()\n",
        "import os\ndef block_0(memory, group, registers):\n    pass\n",
    ],
)
def test_the_check_itself_sees_what_does_not_belong(code):
    with pytest.raises(AssertionError):
        hand_checked(code)


PLACES = (  # in BODY, to put a payload before, behind or in the place of
    *("%r3", "%r<6>", "%tid.x", "$done", "[n]", "entry k", "counter", "0f40000000", ", 4;", ".wide.u32"),
    *(".rn.f32 %f2", "fma", "@!%p1", "[%rd3]", "kernel.cu", ".loc 1 1 1", ".lt", ".global.u32 [", "= 0;"),
    *("sm_90", "9.0", "ret;", ".reg .b64"),
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", PLACES)
def test_no_text_of_the_ptx_becomes_python(programs, text):
    assert BODY.count(text) >= 1
    for payload in PAYLOADS:
        behind = (f"{text}{between}{payload}" for between in ("", " ", ".", ", "))
        for put in (payload, f"{payload}{text}", *behind):
            run(BODY.replace(text, put))  # everywhere, so that declaration and use agree
            run(BODY.replace(text, put, 1))


CALLS = """
.visible .func (.param .b32 func_retval0) helper(.param .b32 helper_param_0)
{
.reg .b32 %r<3>;
ld.param.b32 %r1, [helper_param_0];
add.s32 %r2, %r1, 1;
st.param.b32 [func_retval0+0], %r2;
ret;
}
"""
CALL = (
    "{ .param .b32 param0; st.param.b32 [param0+0], %r2; .param .b32 retval0; "
    "call.uni (retval0), helper, (param0); ld.param.b32 %r3, [retval0+0]; }\nst.global"
)


def with_a_call():
    return BODY.replace(".visible .entry", CALLS + ".visible .entry").replace("st.global", CALL)


@pytest.mark.parametrize("name", ["helper", "helper_param_0", "param0", "retval0", "func_retval0"])
def test_no_name_of_a_function_or_its_parameters_becomes_python(programs, name):
    np.testing.assert_array_equal(run(with_a_call()).outputs["out"], 1 + np.arange(8))
    for payload in PAYLOADS:
        run(with_a_call().replace(name, f"{name}{payload}"))
        run(with_a_call().replace(name, payload))


@pytest.mark.parametrize(
    "name",
    [
        *("extern.trap", "extern.grade", "extern:x", "recurse.k", "results", "results.x", "call.uni extern"),
        *("vprintf", "x.trap"),
    ],
)
def test_an_instruction_of_the_engines_own_is_refused(programs, name):
    result = run(BODY.replace("ret;", f"{name} %r1, %r2;\nret;"))
    assert result.error


def test_entry_and_kernel_names_reach_no_code(programs):
    for payload in PAYLOADS:
        payload = payload[:4000]
        run(BODY, entry=payload)
        run(BODY.replace("entry k", f"entry {payload}"), entry=payload)


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_never_writes_python_of_its_own(programs, seed):
    dice = random.Random(seed)
    tokens = re.findall(r"\s+|[\w$%.]+|.", with_a_call())
    for _ in range(150):
        changed = list(tokens)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(changed))
            changed[at] = dice.choice(
                [*PAYLOADS, "", changed[dice.randrange(len(changed))] * 2, dice.choice(tokens)]
            )
        run("".join(changed))


REMEMBERS = r"""
.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b64 func_retval0) malloc(.param .b64 malloc_param_0);
.visible .entry k(.param .u64 out, .param .u32 n)
{
.reg .b64 %rd<9>; .reg .b32 %r<4>; .reg .pred %p<3>;
ld.param.u64 %rd1, [out];
mov.u64 %rd8, 64;
{ .param .b64 param0; st.param.b64 [param0+0], %rd8; .param .b64 retval0;
call.uni (retval0), malloc, (param0); ld.param.b64 %rd2, [retval0+0]; }
st.global.u64 [%rd1], %rd2;
mov.u32 %r1, 77;
st.global.u32 [%rd2], %r1;
ret;
}
"""


def test_memory_that_a_kernel_allocated_is_gone_before_the_next_case():
    """Addresses are predictable, so a kernel could otherwise find what it left behind."""
    first = run(REMEMBERS)
    assert first.error is None
    where = int(first.outputs["out"][:2].view(np.uint64)[0])
    later = REMEMBERS.replace(
        "st.global.u64 [%rd1], %rd2;",
        f"mov.u64 %rd3, {where}; ld.global.u32 %r2, [%rd3]; st.global.u32 [%rd1], %r2;",
    )
    assert "nothing is allocated" in run(later).error or "freed" in run(later).error


def test_variables_of_another_module_are_as_they_were_too():
    """Kernel A knows where B's variable lies and writes it; B's next case starts with B's own value."""
    b = BODY.replace("st.global.u32 [%rd3], %r3;", "ld.global.u32 %r4, [counter]; st.global.u32 [%rd3], %r4;")
    address = b.replace(
        "ld.global.u32 %r4, [counter];", "mov.u64 %rd2, counter; st.global.u64 [%rd1], %rd2;"
    ).replace("st.global.u32 [%rd3], %r4;", "")
    assert run(b).outputs["out"].tolist() == [0] * 8
    where = int(run(address).outputs["out"][:2].view(np.uint64)[0])
    for guess in range(where - (3 << 36), where + (1 << 36), 1 << 36):
        run(BODY.replace("st.global.u32 [%rd3], %r3;", f"mov.u64 %rd3, {guess}; st.global.u32 [%rd3], %r3;"))
    assert run(b).outputs["out"].tolist() == [0] * 8
