"""The table of instructions: what the engine executes, and all that it knows of each.
A new instruction is a row here.

A row names its types and the handler for each family of them; the last type that an instruction names
decides. The handler writes the Python for it (``translate``), and ``takes`` names the modifiers that it
obeys, or may leave aside because they change no result (a cache hint, ``.aligned``). The other columns are
``ptx.effects``': whether the first operand is written, floating-point operations of a lane, polling,
barriers, memory. A PTX instruction that is not in the table is refused by name, and so is a type or a
modifier that its row has not.

The table stands above ``ptx``, which is given it as data, and above the handlers; ``counters`` and
``sanitizer`` read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from warplab.simt.engine import (
    arithmetic,
    atomics,
    bits,
    calls,
    comparisons,
    conversions,
    cp_async,
    external,
    fp16,
    matrix_moves,
    mbarrier,
    movement,
    numeric,
    packed,
    tensor,
    warp,
    warp_exchanges,
)
from warplab.simt.engine.arithmetic import elementwise, floats
from warplab.simt.ptx.effects import (
    Condition,
    Effects,
    Flops,
    Memory,
    always,
    flops,
    never,
    no_flops,
    unless,
    when,
)
from warplab.simt.ptx.parser import Instr
from warplab.simt.ptx.ptx_types import FLOATS, HALVES, INTEGERS, PAIRS, PREDICATES, TYPES, WORDS, last_type

Handler = Callable[..., None]  # of a translate.Translator and the instruction
ANY = frozenset({None, *TYPES})  # the instruction names no type, or its handler reads them itself
BITS_16, BITS_32, BITS_64 = frozenset({"b16"}), frozenset({"b32"}), frozenset({"b64"})
WHOLE_32 = frozenset({"s32", "u32"})
SINGLE = frozenset({"f32"})

COMPARED = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"
SCOPES = "cta cluster gpu sys"
WEAK_OR_STRONG = f"weak volatile relaxed acquire release acq_rel mmio {SCOPES}"
LEVELS = (  # of the caches: which of them, what is thrown out first, how much is fetched
    "ca cg cs cv lu wb wt "
    "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
    "L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint L2::64B L2::128B L2::256B"
)
PLACED = f"global shared local const param {WEAK_OR_STRONG} {LEVELS} v2 v4 v8"
OF_TILES = "sync aligned row col satfinite rn " + " ".join(
    sorted(set().union(*tensor.WMMA.values(), *tensor.MMA.values()))
)

ATOMIC = f"global shared {WEAK_OR_STRONG} noftz {' '.join(atomics.OPERATIONS)}"
COPIED = f"async commit_group wait_group wait_all mbarrier arrive noinc global shared {LEVELS}"
IN_BULK = "bulk bulk_group tensor 1d 2d 3d 4d 5d tile prefetch L2 read mbarrier::complete_tx::bytes"
OF_MATRICES = "sync aligned m8n8 x1 x2 x4 trans shared"


@dataclass(frozen=True)
class Form:
    """What an instruction does for some types: its ``handler``, and the ``modifiers`` that it may have beside
    its types; None where they are names that ``ptx.inline`` gave.
    """

    handler: Handler
    modifiers: frozenset[str] | None = frozenset()


def takes(modifiers: str, handler: Handler) -> Form:
    """A handler that does what these modifiers say."""
    return Form(handler, frozenset(modifiers.split()))


@dataclass(frozen=True, kw_only=True)
class Instruction(Effects):
    """A row: ``handlers`` by family of types, and the effects. A handler that is no ``Form`` takes no
    modifiers.
    """

    handlers: Mapping[frozenset, Handler | Form]

    @cached_property
    def forms(self) -> dict[str | None, Form]:
        """The form for each type that the row has."""
        families = reversed(self.handlers.items())  # where two have a type, the first counts
        return {
            kind: form if isinstance(form, Form) else Form(form) for types, form in families for kind in types
        }

    def form(self, instr: Instr) -> Form | None:
        """The form for the last type that an instruction names, None if the row has not that type."""
        return self.forms.get(last_type(instr.mods))

    def unknown(self, instr: Instr) -> list[str]:
        """The modifiers of an instruction that its form has not."""
        form = self.form(instr)
        if form is None or form.modifiers is None:
            return []
        return [mod for mod in instr.mods if mod not in form.modifiers and mod not in TYPES]


def computes(handlers: Mapping[frozenset, Handler | Form], *, flops: Flops) -> Instruction:
    """The row of an instruction between registers: it writes its first operand, and that is all it does."""
    return Instruction(
        handlers=handlers, writes=always, flops=flops, polls=never, barrier=never, memory="none"
    )


def acts(handler: Handler | Form) -> Instruction:
    """The row of an instruction that writes nothing and that counters and checks need not know."""
    return Instruction(
        handlers={ANY: handler},
        writes=never,
        flops=no_flops,
        polls=never,
        barrier=never,
        memory="none",
    )


def moves_tile(
    handlers: Mapping[frozenset, Handler | Form], *, writes: Condition, memory: Memory, flops: Flops
) -> Instruction:
    """The row of an instruction of a whole warp, or of the copy unit, that goes to memory."""
    return Instruction(
        handlers=handlers, writes=writes, flops=flops, polls=never, barrier=never, memory=memory
    )


def _ends_its_block(code, instr):
    """``ptx.blocks`` takes these out of a block's code: the machine acts on them. Other forms are refused."""
    raise code.unsupported(instr)


INSTRUCTIONS: dict[str, Instruction] = {
    # arithmetic
    "add": computes(
        {
            INTEGERS: takes("sat cc", arithmetic.wrapping("add")),
            FLOATS: takes("rn rz rm rp ftz sat", floats("{0} + {1}")),
            HALVES: takes("rn ftz sat", fp16.arithmetic("{0} + {1}")),
            PAIRS: packed.in_pairs("add"),
        },
        flops=flops(1),
    ),
    "sub": computes(
        {
            INTEGERS: takes("sat cc", arithmetic.wrapping("sub")),
            FLOATS: takes("rn rz rm rp ftz sat", floats("{0} - {1}")),
            HALVES: takes("rn ftz sat", fp16.arithmetic("{0} - {1}")),
        },
        flops=flops(1),
    ),
    "mul": computes(
        {
            INTEGERS: takes("lo hi wide", arithmetic.multiply),
            FLOATS: takes("rn rz rm rp ftz sat", floats("{0} * {1}")),
            HALVES: takes("rn ftz sat", fp16.arithmetic("{0} * {1}")),
        },
        flops=flops(1),
    ),
    "mad": computes(
        {
            INTEGERS: takes("lo hi wide sat cc", arithmetic.multiply_add),
            FLOATS: takes("rn rz rm rp ftz sat", floats("numeric.fma({0}, {1}, {2})")),
        },
        flops=flops(2),
    ),
    "fma": computes(
        {
            FLOATS: takes("rn rz rm rp ftz sat", floats("numeric.fma({0}, {1}, {2})")),
            HALVES: takes("rn ftz sat relu", fp16.arithmetic("numeric.fma_odd({0}.astype('f8'), {1}, {2})")),
        },
        flops=flops(2),
    ),
    "addc": computes({INTEGERS: takes("cc", arithmetic.carried("add", takes=True))}, flops=no_flops),
    "subc": computes({INTEGERS: takes("cc", arithmetic.carried("sub", takes=True))}, flops=no_flops),
    "madc": computes({INTEGERS: takes("lo hi cc", arithmetic.carried("mad", takes=True))}, flops=no_flops),
    "div": computes(
        {
            INTEGERS: elementwise("numeric.idiv({0}, {1})"),
            FLOATS: takes("approx full rn rz rm rp ftz", floats("{0} / {1}")),
        },
        flops=flops(1),
    ),
    "rem": computes({INTEGERS: elementwise("numeric.irem({0}, {1})")}, flops=no_flops),
    "abs": computes(
        {
            INTEGERS | FLOATS: takes("ftz", elementwise("np.abs({0})")),
            HALVES: takes("ftz", fp16.sign_bits("{0} & ~{1}")),
        },
        flops=no_flops,
    ),
    "neg": computes(
        {
            INTEGERS | FLOATS: takes("ftz", elementwise("np.negative({0})")),
            HALVES: takes("ftz", fp16.sign_bits("{0} ^ {1}")),
        },
        flops=no_flops,
    ),
    "min": computes(
        {
            INTEGERS: takes("relu", arithmetic.integers_smaller_or_larger("min")),
            FLOATS: takes("ftz NaN xorsign abs", arithmetic.floats_smaller_or_larger("least")),
            HALVES: takes("ftz NaN xorsign abs", fp16.smaller_or_larger("least")),
            PAIRS: takes("relu", packed.in_pairs("minimum")),
        },
        flops=no_flops,
    ),
    "max": computes(
        {
            INTEGERS: takes("relu", arithmetic.integers_smaller_or_larger("max")),
            FLOATS: takes("ftz NaN xorsign abs", arithmetic.floats_smaller_or_larger("greatest")),
            HALVES: takes("ftz NaN xorsign abs", fp16.smaller_or_larger("greatest")),
            PAIRS: takes("relu", packed.in_pairs("maximum")),
        },
        flops=no_flops,
    ),
    "copysign": computes(
        {FLOATS: elementwise("np.copysign({1}, {0})")}, flops=no_flops
    ),  # the sign of the first source
    "dp4a": computes({WHOLE_32: packed.dot}, flops=no_flops),
    "dp2a": computes({WHOLE_32: takes("lo hi", packed.dot)}, flops=no_flops),
    "sad": computes({INTEGERS: packed.sad}, flops=no_flops),
    **{
        f"{name}{parts}": computes({WHOLE_32: takes("sat add", packed.video)}, flops=no_flops)
        for name in packed.VIDEO
        for parts in (2, 4)
    },
    # special functions
    "sqrt": computes({FLOATS: takes("approx rn rz rm rp ftz", floats("np.sqrt({0})"))}, flops=flops(1)),
    "rcp": computes(
        {FLOATS: takes("approx rn rz rm rp ftz", floats("(np.ones(1, '{dtype}') / {0})"))}, flops=flops(1)
    ),
    "rsqrt": computes(
        {FLOATS: takes("approx ftz", elementwise("numeric.approx(numeric.rsqrt, {0})"))}, flops=flops(1)
    ),
    "lg2": computes(
        {SINGLE: takes("approx ftz", elementwise("numeric.approx(np.log2, {0})"))}, flops=flops(1)
    ),
    "sin": computes(
        {SINGLE: takes("approx ftz", elementwise("numeric.approx(np.sin, {0})"))}, flops=flops(1)
    ),
    "cos": computes(
        {SINGLE: takes("approx ftz", elementwise("numeric.approx(np.cos, {0})"))}, flops=flops(1)
    ),
    "ex2": computes(
        {
            SINGLE: takes("approx ftz", elementwise("numeric.approx(np.exp2, {0})")),
            HALVES: takes("approx ftz", fp16.arithmetic("np.exp2({0}.astype('f8'))")),
        },
        flops=flops(1),
    ),
    "tanh": computes(
        {
            SINGLE: takes("approx", elementwise("numeric.approx(np.tanh, {0})")),
            HALVES: takes("approx", fp16.arithmetic("np.tanh({0}.astype('f8'))")),
        },
        flops=flops(1),
    ),
    # bits
    "and": computes({INTEGERS | PREDICATES: elementwise("{0} & {1}")}, flops=no_flops),
    "or": computes({INTEGERS | PREDICATES: elementwise("{0} | {1}")}, flops=no_flops),
    "xor": computes({INTEGERS | PREDICATES: elementwise("{0} ^ {1}")}, flops=no_flops),
    "not": computes({INTEGERS | PREDICATES: elementwise("~{0}")}, flops=no_flops),
    "lop3": computes({BITS_32: bits.lop3}, flops=no_flops),
    "shl": computes({INTEGERS: bits.shift("left")}, flops=no_flops),
    "shr": computes({INTEGERS: bits.shift("right")}, flops=no_flops),
    "shf": computes({BITS_32: takes("l r clamp wrap", bits.shf)}, flops=no_flops),
    "bfe": computes({INTEGERS: bits.bfe}, flops=no_flops),
    "bfi": computes({INTEGERS: bits.bfi}, flops=no_flops),
    "bmsk": computes({BITS_32: takes("clamp wrap", bits.bmsk)}, flops=no_flops),
    "bfind": computes({INTEGERS: takes("shiftamt", bits.bfind)}, flops=no_flops),
    "brev": computes({INTEGERS: elementwise("numeric.brev({0})")}, flops=no_flops),
    "popc": computes({INTEGERS: bits.popc}, flops=no_flops),
    "clz": computes({INTEGERS: bits.clz}, flops=no_flops),
    "prmt": computes({BITS_32: takes(" ".join(numeric.PRMT), bits.prmt)}, flops=no_flops),
    # comparisons, choices, conversions, moves between registers
    "setp": computes(
        {INTEGERS | FLOATS | HALVES: takes(f"{COMPARED} and or xor ftz", comparisons.setp)}, flops=no_flops
    ),
    "set": computes(
        {INTEGERS | FLOATS | HALVES: takes(f"{COMPARED} and or xor ftz", comparisons.set_)}, flops=no_flops
    ),
    "selp": computes({WORDS: comparisons.selp}, flops=no_flops),
    "testp": computes({FLOATS: takes(" ".join(comparisons.TESTS), comparisons.testp)}, flops=no_flops),
    "cvt": computes(
        {ANY: takes(f"{' '.join(conversions.ROUNDINGS)} ftz sat satfinite relu", conversions.cvt)},
        flops=no_flops,
    ),
    "cvta": computes({INTEGERS: takes("to global shared local const param", movement.cvta)}, flops=no_flops),
    "mov": computes({WORDS: movement.mov}, flops=no_flops),
    # between the lanes of a warp
    "shfl": computes({BITS_32: takes("sync up down bfly idx", warp_exchanges.shfl)}, flops=no_flops),
    "vote": computes(
        {BITS_32 | PREDICATES: takes("sync all any uni ballot", warp_exchanges.vote)}, flops=no_flops
    ),
    "match": computes({INTEGERS: takes("sync any all", warp_exchanges.match)}, flops=no_flops),
    "redux": computes(
        {INTEGERS: takes(f"sync {' '.join(warp.REDUCTIONS)}", warp_exchanges.redux)}, flops=no_flops
    ),
    "activemask": computes({BITS_32: warp_exchanges.activemask}, flops=no_flops),
    "elect": computes({ANY: takes("sync", warp_exchanges.elect)}, flops=no_flops),
    "movmatrix": computes(
        {BITS_16: takes("sync aligned m8n8 trans", matrix_moves.movmatrix)}, flops=no_flops
    ),
    "mma": computes({ANY: takes(OF_TILES, tensor.mma)}, flops=tensor.flops),
    "wmma": moves_tile(
        {ANY: takes(f"load store mma a b c d global shared {OF_TILES}", tensor.wmma)},
        writes=unless("store"),
        memory="tile",
        flops=tensor.flops,
    ),
    "ldmatrix": moves_tile(
        {BITS_16: takes(OF_MATRICES, matrix_moves.ldmatrix)}, writes=always, memory="load", flops=no_flops
    ),
    "stmatrix": moves_tile(
        {BITS_16: takes(OF_MATRICES, matrix_moves.stmatrix)}, writes=never, memory="store", flops=no_flops
    ),
    # memory
    "ld": Instruction(
        handlers={WORDS: takes(f"{PLACED} nc", movement.load)},
        writes=always,
        flops=no_flops,
        polls=when("volatile", "acquire", "relaxed"),
        barrier=never,
        memory="load",
    ),
    "ldu": Instruction(
        handlers={WORDS: takes(f"{PLACED} nc", movement.load)},
        writes=always,
        flops=no_flops,
        polls=never,
        barrier=never,
        memory="load",
    ),
    "st": Instruction(
        handlers={WORDS: takes(PLACED, movement.store)},
        writes=never,
        flops=no_flops,
        polls=never,
        barrier=never,
        memory="store",
    ),
    "atom": Instruction(
        handlers={INTEGERS | FLOATS | HALVES: takes(ATOMIC, atomics.atomic)},
        writes=always,
        flops=no_flops,
        polls=always,
        barrier=never,
        memory="atomic",
    ),
    "red": Instruction(
        handlers={INTEGERS | FLOATS | HALVES: takes(ATOMIC, atomics.atomic)},
        writes=never,
        flops=no_flops,
        polls=never,
        barrier=never,
        memory="atomic",
    ),
    "cp": moves_tile(
        {ANY: takes(f"{COPIED} {IN_BULK}", cp_async.cp)}, writes=never, memory="copy", flops=no_flops
    ),
    "prefetch": acts(takes("global local L1 L2 L2::evict_last L2::evict_normal", movement.nothing)),
    "createpolicy": computes(
        {
            INTEGERS: takes(
                "fractional range L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged global",
                movement.cache_policy,
            )
        },
        flops=no_flops,
    ),
    # order and control
    "membar": acts(takes("cta gl sys", movement.fence)),
    "fence": acts(
        takes(f"{SCOPES} gl sc acq_rel acquire release proxy alias async global shared", movement.fence)
    ),
    # a launch waits for the one before it, and lets the next begin when it has ended
    "griddepcontrol": acts(takes("launch_dependents wait", movement.nothing)),
    "nanosleep": Instruction(
        handlers={ANY: movement.nothing},
        writes=never,
        flops=no_flops,
        polls=always,
        barrier=never,
        memory="none",
    ),
    **{
        name: Instruction(
            handlers={ANY: takes("sync warp red popc and or aligned cta grid", _ends_its_block)},
            writes=when("red"),
            flops=no_flops,
            polls=never,
            barrier=unless("warp", "arrive", "cluster"),
            memory="none",
        )
        for name in ("bar", "barrier")
    },
    "mbarrier": Instruction(
        handlers={
            BITS_64: takes(
                "init inval arrive arrive_drop noComplete test_wait try_wait parity pending_count "
                "release acquire relaxed cta shared",
                mbarrier.mbarrier,
            )
        },
        writes=unless("init", "inval"),
        flops=no_flops,
        polls=when("test_wait", "try_wait"),
        barrier=never,
        memory="none",
    ),
    "bra": acts(takes("uni", _ends_its_block)),
    "ret": acts(takes("uni", _ends_its_block)),
    "exit": acts(_ends_its_block),
    "trap": acts(external.stop),
    "call": acts(Form(calls.call, None)),
    # what ptx.inline makes of calls
    "extern": computes({ANY: Form(external.call, None)}, flops=no_flops),
    "recurse": computes({ANY: Form(calls.recurse, None)}, flops=no_flops),
    "results": acts(calls.results),
}
