"""``mbarrier``: each instruction held against the PTX manual, and what the manual forbids. What arrivals and
waits put in an order is in ``test_race_flags.py``, programs of CUDA C++ are in ``test_mbarrier_programs.py``.
"""

import random

import numpy as np
import pytest

import warplab

MOST = (1 << 20) - 1
HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
    .reg .pred p;
    .reg .b32 %t, %n, %a;
    .reg .b64 %out, %in, %s<40>, %d, %g;
    .shared .align 16 .b8 tile[256];
    .shared .align 8 .b64 bar;
    .shared .align 8 .b64 other;
    ld.param.u64 %out, [out];
    ld.param.u64 %in, [in];
    mov.u32 %t, %tid.x;
    cvt.u64.u32 %d, %t;
    cvta.shared.u64 %g, bar;
"""


def run(body: str, threads: int = 1, results: int = 64) -> np.ndarray:
    out = np.zeros(results, np.uint32)
    kernel = warplab.ptx_kernel(HEAD + body + "\n    ret;\n}\n", "k")
    kernel[1, threads](out, np.arange(4 * 128, dtype=np.uint32))
    return out


class Model:
    """One mbarrier as the manual describes it, for one thread that does one thing after the other."""

    def __init__(self, count: int):
        self.expected = self.pending = count
        self.phase, self.waited = 0, True

    def arrive(self, count: int = 1, drops: bool = False) -> tuple[int, int]:
        """The phase before, and the pending count before."""
        before = self.phase, self.pending
        self.expected -= count * drops
        self.pending -= count
        if self.pending == 0:
            self.phase, self.pending, self.waited = self.phase + 1, self.expected, False
        return before


def sequence(rng: random.Random) -> tuple[str, list[int]]:
    """A legal sequence of operations of one thread on one object, and what each gives."""
    model = Model(rng.choice([1, 2, 3, 7, MOST]))
    lines, expected, tokens = [f"mbarrier.init.shared.b64 [bar], {model.expected};"], [], []

    def store(line: str, value: int) -> None:
        lines.extend([line, f"st.global.u32 [%out+{4 * len(expected)}], %n;"])
        expected.append(value)

    def ask(line: str, value: bool) -> None:
        lines.append(line)
        store("selp.b32 %n, 1, 0, p;", int(value))

    place = {"shared": "bar", "shared::cta": "bar", "": "%g"}
    for _ in range(24):
        space = rng.choice(list(place))
        suffix, at = f".{space}.b64" if space else ".b64", f"[{place[space]}]"
        what = rng.choice(["arrive", "incomplete", "drop", "parity", "token", "copies"])
        order = rng.choice(["", "", ".release.cta"])
        if what in ("arrive", "drop", "incomplete"):
            if not model.waited or len(tokens) == 40:
                continue
            count, drops = 1, what == "drop" or (what == "incomplete" and rng.random() < 0.3)
            if what == "incomplete":
                if model.pending < 3:
                    continue
                count = rng.randint(1, min(model.pending - 1, MOST // 2))
            if model.pending == 0 or (drops and model.expected <= count):
                continue
            name = "arrive_drop" if drops else "arrive"
            tokens.append((*model.arrive(count, drops), what == "incomplete"))
            state = f"%s{len(tokens) - 1}"
            if what == "incomplete":
                lines.append(f"mbarrier.{name}.noComplete{order}{suffix} {state}, {at}, {count};")
                store(f"mbarrier.pending_count.b64 %n, {state};", tokens[-1][1])
            else:
                lines.append(f"mbarrier.{name}{order}{suffix} {state}, {at};")
        elif what == "copies":
            lines.append(f"cp.async.mbarrier.arrive{suffix} {at};" if model.pending < MOST else "")
        elif what == "parity":
            bit, wait = rng.randint(0, 1), rng.choice(["test_wait", "try_wait"])
            complete = model.phase % 2 != bit  # that phase is the one before
            model.waited |= complete
            ask(f"mbarrier.{wait}.parity{suffix} p, {at}, {bit};", complete)
        elif tokens and model.phase - tokens[-1][0] <= 1:
            complete = model.phase > tokens[-1][0]
            model.waited |= complete
            ask(f"mbarrier.test_wait{suffix} p, {at}, %s{len(tokens) - 1};", complete)
    return "\n".join(lines), expected


@pytest.mark.slow
def test_random_sequences_do_what_the_manual_says():
    rng, said = random.Random(5), 0
    for _ in range(60):
        body, expected = sequence(rng)
        np.testing.assert_array_equal(run(body)[: len(expected)], expected, err_msg=body)
        said += len(expected)
    assert said > 500


def test_an_arrival_of_copies_that_is_counted_may_complete_a_phase():
    body = """mbarrier.init.shared.b64 [bar], 2;
    cp.async.ca.shared.global [tile], [%in+16], 16;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    mbarrier.test_wait.parity.shared.b64 p, [bar], 0;
    selp.b32 %n, 1, 0, p;
    st.global.u32 [%out], %n;
    mbarrier.arrive.shared.b64 _, [bar];
    mbarrier.test_wait.parity.shared.b64 p, [bar], 0;
    selp.b32 %n, 1, 0, p;
    st.global.u32 [%out+4], %n;
    ld.shared.u32 %n, [tile+8];
    st.global.u32 [%out+8], %n;"""
    assert run(body)[:3].tolist() == [0, 1, 6]


INIT = "mbarrier.init.shared.b64 [bar], {};"
MISUSES = {
    "of an object that nobody initialised": (
        "mbarrier.arrive.shared.b64 _, [bar];",
        "arrives at bar, which is not an initialised mbarrier",
    ),
    "after inval": (
        INIT.format(1) + "mbarrier.inval.shared.b64 [bar]; mbarrier.test_wait.parity.shared.b64 p, [bar], 0;",
        "waits for bar, which is not an initialised mbarrier",
    ),
    "initialised twice": (INIT.format(1) + INIT.format(1), r"initialises bar \(.*\) again"),
    "for nobody": (INIT.format(0), "initialises bar for 0 arrivals"),
    "for too many": (INIT.format(MOST + 1), "initialises bar for 1,048,576 arrivals"),
    "completed by noComplete": (
        INIT.format(2) + "mbarrier.arrive.noComplete.shared.b64 _, [bar], 2;",
        "completes a phase of bar .* with arrive.noComplete",
    ),
    "by too many": (
        INIT.format(2) + "mbarrier.arrive.noComplete.shared.b64 _, [bar], 3;",
        "phase 0, whose 2 arrivals are all made",
    ),
    "that nobody waited for": (
        INIT.format(1) + "mbarrier.arrive.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar];",
        "arrives at bar .* in phase 1, and nobody has waited for phase 0",
    ),
    "with too many copies": (
        INIT.format(MOST) + "cp.async.mbarrier.arrive.shared.b64 [bar];",
        "makes bar .* expect more than 1,048,575 arrivals",
    ),
    "with another's token": (
        INIT.format(1)
        + "mbarrier.init.shared.b64 [other], 1; mbarrier.arrive.shared.b64 %s0, [bar];"
        + "mbarrier.test_wait.shared.b64 p, [other], %s0;",
        "waits for other .* with a token that it did not give",
    ),
    "with an old token": (
        INIT.format(1)
        + "mbarrier.arrive.shared.b64 %s0, [bar]; mbarrier.test_wait.shared.b64 p, [bar], %s0;"
        + "mbarrier.arrive.shared.b64 _, [bar]; mbarrier.test_wait.shared.b64 p, [bar], %s0;",
        "waits for phase 0 of bar .*, which is in phase 2 by now",
    ),
    "with a parity of 2": (
        INIT.format(1) + "mov.u32 %n, 2; mbarrier.test_wait.parity.shared.b64 p, [bar], %n;",
        "with the parity 2",
    ),
    "whose pending count has no token": (
        INIT.format(1) + "mbarrier.arrive.shared.b64 %s0, [bar]; mbarrier.pending_count.b64 %n, %s0;",
        "asks for the pending count of a state that is not a token",
    ),
    "written as data": (
        INIT.format(1) + "st.shared.u32 [bar+4], 7;",
        "writes to the mbarrier bar .* as data",
    ),
    "read as data": (INIT.format(1) + "ld.shared.u64 %s0, [bar];", "reads the mbarrier bar .* as data"),
    "outside shared memory": ("mbarrier.init.b64 [%out], 1;", "uses an mbarrier outside shared memory"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_what_the_manual_leaves_undefined_is_an_error(misuse):
    body, said = MISUSES[misuse]
    with pytest.raises(warplab.BarrierMisuse, match=said):
        run(body)


def test_an_object_lies_at_a_multiple_of_eight():
    with pytest.raises(warplab.MisalignedAccess, match="not a multiple of 8"):
        run("mbarrier.init.shared.b64 [tile+4], 1;")


def test_memory_is_data_again_after_inval():
    body = (
        INIT.format(1) + "mbarrier.inval.shared.b64 [bar]; st.shared.u32 [bar], 9; ld.shared.u32 %n, [bar];"
    )
    assert run(body + "st.global.u32 [%out], %n;")[0] == 9


def test_a_phase_waits_for_arrivals_and_bytes_whichever_come_last():
    steps = [  # of phases 0, 1 and 2: what is done, and whether phase 0, 1 or 2 is complete then
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32", 0, 0),
        ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16", 0, 0),
        ("mbarrier.complete_tx.shared::cta.b64 [bar], 16", 0, 1),
        ("mbarrier.complete_tx.shared::cta.b64 [bar], 48", 1, 0),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 48", 1, 0),
        ("mbarrier.arrive.shared::cta.b64 _, [bar]", 1, 1),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 0", 2, 1),
    ]
    body = "mbarrier.init.shared.b64 [bar], 1;"
    for i, (step, phase, _) in enumerate(steps):
        body += f"{step};\nmbarrier.test_wait.parity.shared.b64 p, [bar], {phase % 2};"
        body += f"selp.b32 %n, 1, 0, p;\nst.global.u32 [%out+{4 * i}], %n;"
    assert run(body)[: len(steps)].tolist() == [done for *_, done in steps]


@pytest.mark.parametrize(
    "steps, said",
    [
        ("mbarrier.complete_tx.shared.b64 [bar], 16; mbarrier.arrive.shared.b64 _, [bar];", "16 bytes more"),
        (
            "mbarrier.expect_tx.shared.b64 [bar], 1048575; mbarrier.expect_tx.shared.b64 [bar], 1;",
            "1,048,575",
        ),
    ],
)
def test_bytes_that_no_phase_expects_and_too_many_are_refused(steps, said):
    with pytest.raises(warplab.BarrierMisuse, match=said):
        run(f"mbarrier.init.shared.b64 [bar], 1; {steps}")


COPY = """
    setp.ne.u32 p, %t, 0;
    @p bra SKIP;
    mbarrier.init.shared.b64 [bar], 16;
SKIP:
    bar.sync 0;
    mov.u32 %n, tile;
    mad.lo.u32 %a, %t, 16, %n;
    mad.wide.u32 %in, %t, 16, %in;
    cp.async.ca.shared.global [%a], [%in], 16;
    {signal}
    {arrive}
WAIT:
    {wait}
    ld.shared.u32 %n, [%a+4];
    mad.wide.u32 %out, %t, 4, %out;
    st.global.u32 [%out], %n;
"""
COPIED = {
    "signal": "cp.async.mbarrier.arrive.shared.b64 [bar];",
    "arrive": "mbarrier.arrive.shared.b64 %s0, [bar];",
    "wait": "mbarrier.test_wait.shared.b64 p, [bar], %s0; @!p bra WAIT;",
}


@pytest.mark.parametrize(
    "way", [{}, {"signal": "", "arrive": "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];", "wait": None}]
)
def test_a_copy_is_there_after_the_wait_for_its_barrier(way):
    by_parity = "mbarrier.test_wait.parity.shared.b64 p, [bar], 0; @!p bra WAIT;"
    parts = COPIED | {k: v if v is not None else by_parity for k, v in way.items()}
    assert run(COPY.format(**parts), 16)[:16].tolist() == [4 * t + 1 for t in range(16)]


@pytest.mark.parametrize("mistake", [{"signal": ""}, {"wait": ""}])
def test_a_copy_that_nobody_has_waited_for_is_an_error(mistake):
    with pytest.raises(warplab.UnfinishedCopy, match="its own asynchronous copy"):
        run(COPY.format(**(COPIED | mistake)), 16)


def test_an_arrival_before_a_copy_says_nothing_of_that_copy():
    early = COPY.replace("    {signal}\n", "").replace("    cp.async", "    {signal}\n    cp.async")
    with pytest.raises(warplab.UnfinishedCopy, match="its own asynchronous copy"):
        run(early.format(**COPIED), 16)
