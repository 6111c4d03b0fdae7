"""The table of instructions: all PTX instructions that the engine executes, one row each.

A row has a form for each family of types; the last type among an instruction's modifiers selects it. A form
has a handler, which emits the Python code of the instruction (``translate``), and the modifiers that the
handler implements, or may ignore because they change no result (a cache hint, ``.aligned``). The other
columns are those of ``ptx.effects``: whether the first operand is written, floating-point operations of a
lane, polling, barriers, memory; their defaults are those of an instruction that only computes. An instruction
that is not in the table is refused by name, and so is a type or a modifier that is not in its row.

``ptx`` gets the table as an argument; ``counters`` and ``sanitizer`` import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warplab.simt.engine import (
    arithmetic,
    atomics,
    bits,
    calls,
    clusters,
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
    wgmma,
)
from warplab.simt.engine.arithmetic import elementwise, floats
from warplab.simt.ptx.effects import Effects, always, flops, never, unless, when
from warplab.simt.ptx.parser import Instr
from warplab.simt.ptx.ptx_types import FLOATS, HALVES, INTEGERS, PAIRS, PREDICATES, TYPES, WORDS, last_type

Handler = Callable[..., None]  # called with a translate.Translator and the instruction
ANY = frozenset({"", *TYPES})  # the instruction has no type, or its handler looks at the types itself
BITS_16, BITS_32, BITS_64 = frozenset({"b16"}), frozenset({"b32"}), frozenset({"b64"})
WHOLE_32 = frozenset({"s32", "u32"})
WHOLE = frozenset({"u32", "u64"})
SINGLE = frozenset({"f32"})

DIRECTED = "rn rz rm rp ftz"
ROUNDED = f"{DIRECTED} sat"
HALF_ROUNDED = "rn ftz sat"
CHOSEN = "ftz NaN xorsign abs"
COMPARED = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"
SCOPES = "cta cluster gpu sys"
WEAK_OR_STRONG = f"weak volatile relaxed acquire release acq_rel mmio {SCOPES}"
LEVELS = (  # cache hints: the level, the eviction priority, the prefetch size
    "ca cg cs cv lu wb wt "
    "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
    "L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint L2::64B L2::128B L2::256B"
)
PLACED = f"global shared shared::cluster local const param {WEAK_OR_STRONG} {LEVELS} v2 v4 v8"
OF_TILES = "sync aligned row col satfinite rn " + " ".join(
    sorted(set().union(*tensor.WMMA.values(), *tensor.MMA.values()))
)

ATOMIC = f"global shared shared::cluster {WEAK_OR_STRONG} noftz {' '.join(atomics.OPERATIONS)}"
COPIED = (
    f"async commit_group wait_group wait_all mbarrier arrive noinc global shared shared::cluster {LEVELS}"
)
IN_BULK = (
    "bulk bulk_group tensor 1d 2d 3d 4d 5d tile prefetch L2 read mbarrier::complete_tx::bytes "
    f"multicast::cluster reduce noftz {' '.join(atomics.OPERATIONS)}"
)
OF_MATRICES = "sync aligned m8n8 x1 x2 x4 trans shared"


@dataclass(frozen=True)
class Form:
    """An instruction for some ``types``: its ``handler``, and the ``modifiers`` that it may have beside its
    types (None: any, for the names that ``ptx.inline`` puts there).
    """

    types: frozenset
    handler: Handler
    modifiers: frozenset[str] | None


def form(types: frozenset, handler: Handler, modifiers: str | None = "") -> Form:
    """Make a Form; ``modifiers`` are separated by spaces."""
    return Form(types, handler, None if modifiers is None else frozenset(modifiers.split()))


@dataclass(frozen=True, kw_only=True)
class Instruction(Effects):
    """A row of the table: the ``forms`` by type, and the effects."""

    forms: Mapping[str, Form]

    def form(self, instr: Instr) -> Form | None:
        """The form for the last type of an instruction; None if the row does not have that type."""
        return self.forms.get(last_type(instr.mods))

    def unknown(self, instr: Instr) -> list[str]:
        """The modifiers of an instruction that its form does not have."""
        form = self.form(instr)
        if form is None or form.modifiers is None:
            return []
        return [mod for mod in instr.mods if mod not in form.modifiers and mod not in TYPES]


def row(*forms: Form, **effects) -> Instruction:
    """Make a row of the table. ``effects`` are those of ``ptx.effects`` that differ from the defaults, an
    instruction that only writes its first operand.
    """
    return Instruction(forms={kind: each for each in forms for kind in each.types}, **effects)


def _ends_its_block(code, instr):
    """The handler of instructions that end a basic block, which the machine executes: ``ptx.blocks`` takes
    them out of the block's code, so any that are left are refused.
    """
    raise code.unsupported(instr)


def _ends_at_barrier(instr: Instr) -> bool:
    """Whether threads wait here, which ends a basic block: not at arrivals. A warp's barrier is handled by
    ``ptx.blocks``.
    """
    return "wait" in instr.mods if "cluster" in instr.mods else not {"warp", "arrive"} & set(instr.mods)


def _at_a_barrier(code, instr):
    if instr.opcode == "bar" or instr.mods[:2] != ("cluster", "arrive"):
        _ends_its_block(code, instr)
    code.emit(f"clusters.arrive(memory, group, {code.site(instr)}, {'relaxed' in instr.mods})")


INSTRUCTIONS: dict[str, Instruction] = {
    # arithmetic
    "add": row(
        form(INTEGERS, arithmetic.wrapping("add"), "sat cc"),
        form(FLOATS, floats("{0} + {1}"), ROUNDED),
        form(HALVES, fp16.arithmetic("{0} + {1}"), HALF_ROUNDED),
        form(PAIRS, packed.in_pairs("add")),
        flops=flops(1),
    ),
    "sub": row(
        form(INTEGERS, arithmetic.wrapping("sub"), "sat cc"),
        form(FLOATS, floats("{0} - {1}"), ROUNDED),
        form(HALVES, fp16.arithmetic("{0} - {1}"), HALF_ROUNDED),
        flops=flops(1),
    ),
    "mul": row(
        form(INTEGERS, arithmetic.multiply, "lo hi wide"),
        form(FLOATS, floats("{0} * {1}"), ROUNDED),
        form(HALVES, fp16.arithmetic("{0} * {1}"), HALF_ROUNDED),
        flops=flops(1),
    ),
    "mad": row(
        form(INTEGERS, arithmetic.multiply_add, "lo hi wide sat cc"),
        form(FLOATS, floats("numeric.fma({0}, {1}, {2})"), ROUNDED),
        flops=flops(2),
    ),
    "fma": row(
        form(FLOATS, floats("numeric.fma({0}, {1}, {2})"), ROUNDED),
        form(HALVES, fp16.arithmetic("numeric.fma_odd({0}.astype('f8'), {1}, {2})"), f"{HALF_ROUNDED} relu"),
        flops=flops(2),
    ),
    "addc": row(form(INTEGERS, arithmetic.carried("add", takes=True), "cc")),
    "subc": row(form(INTEGERS, arithmetic.carried("sub", takes=True), "cc")),
    "madc": row(form(INTEGERS, arithmetic.carried("mad", takes=True), "lo hi cc")),
    "div": row(
        form(INTEGERS, elementwise("numeric.idiv({0}, {1})")),
        form(FLOATS, floats("{0} / {1}"), f"approx full {DIRECTED}"),
        flops=flops(1),
    ),
    "rem": row(form(INTEGERS, elementwise("numeric.irem({0}, {1})"))),
    "abs": row(
        form(INTEGERS | FLOATS, elementwise("np.abs({0})"), "ftz"),
        form(HALVES, fp16.sign_bits("{0} & ~{1}"), "ftz"),
    ),
    "neg": row(
        form(INTEGERS | FLOATS, elementwise("np.negative({0})"), "ftz"),
        form(HALVES, fp16.sign_bits("{0} ^ {1}"), "ftz"),
    ),
    "min": row(
        form(INTEGERS, arithmetic.integers_smaller_or_larger("min"), "relu"),
        form(FLOATS, arithmetic.floats_smaller_or_larger("least"), CHOSEN),
        form(HALVES, fp16.smaller_or_larger("least"), CHOSEN),
        form(PAIRS, packed.in_pairs("minimum"), "relu"),
    ),
    "max": row(
        form(INTEGERS, arithmetic.integers_smaller_or_larger("max"), "relu"),
        form(FLOATS, arithmetic.floats_smaller_or_larger("greatest"), CHOSEN),
        form(HALVES, fp16.smaller_or_larger("greatest"), CHOSEN),
        form(PAIRS, packed.in_pairs("maximum"), "relu"),
    ),
    "copysign": row(form(FLOATS, elementwise("np.copysign({1}, {0})"))),  # the sign of the first source
    "dp4a": row(form(WHOLE_32, packed.dot)),
    "dp2a": row(form(WHOLE_32, packed.dot, "lo hi")),
    "sad": row(form(INTEGERS, elementwise("{2} + np.where({0} > {1}, {0} - {1}, {1} - {0})"))),
    **{
        f"{name}{parts}": row(form(WHOLE_32, packed.video, "sat add"))
        for name in packed.VIDEO
        for parts in (2, 4)
    },
    # special functions
    "sqrt": row(form(FLOATS, floats("np.sqrt({0})"), f"approx {DIRECTED}"), flops=flops(1)),
    "rcp": row(form(FLOATS, floats("(np.ones(1, '{dtype}') / {0})"), f"approx {DIRECTED}"), flops=flops(1)),
    "rsqrt": row(
        form(FLOATS, elementwise("numeric.approx(numeric.rsqrt, {0})"), "approx ftz"), flops=flops(1)
    ),
    "lg2": row(form(SINGLE, elementwise("numeric.approx(np.log2, {0})"), "approx ftz"), flops=flops(1)),
    "sin": row(form(SINGLE, elementwise("numeric.approx(np.sin, {0})"), "approx ftz"), flops=flops(1)),
    "cos": row(form(SINGLE, elementwise("numeric.approx(np.cos, {0})"), "approx ftz"), flops=flops(1)),
    "ex2": row(
        form(SINGLE, elementwise("numeric.approx(np.exp2, {0})"), "approx ftz"),
        form(HALVES, fp16.arithmetic("np.exp2({0}.astype('f8'))"), "approx ftz"),
        flops=flops(1),
    ),
    "tanh": row(
        form(SINGLE, elementwise("numeric.approx(np.tanh, {0})"), "approx"),
        form(HALVES, fp16.arithmetic("np.tanh({0}.astype('f8'))"), "approx"),
        flops=flops(1),
    ),
    # bits
    "and": row(form(INTEGERS | PREDICATES, elementwise("{0} & {1}"))),
    "or": row(form(INTEGERS | PREDICATES, elementwise("{0} | {1}"))),
    "xor": row(form(INTEGERS | PREDICATES, elementwise("{0} ^ {1}"))),
    "not": row(form(INTEGERS | PREDICATES, elementwise("~{0}"))),
    "lop3": row(form(BITS_32, bits.lop3)),
    "shl": row(form(INTEGERS, bits.shift("left"))),
    "shr": row(form(INTEGERS, bits.shift("right"))),
    "shf": row(form(BITS_32, bits.shf, "l r clamp wrap")),
    "bfe": row(form(INTEGERS, elementwise("numeric.bfe({0}, {1}, {2})", "= u4 u4"))),
    "bfi": row(form(INTEGERS, elementwise("numeric.bfi({0}, {1}, {2}, {3})", "= = u4 u4"))),
    "bmsk": row(form(BITS_32, bits.bmsk, "clamp wrap")),
    "bfind": row(form(INTEGERS, bits.bfind, "shiftamt")),
    "brev": row(form(INTEGERS, elementwise("numeric.brev({0})"))),
    "popc": row(form(INTEGERS, elementwise("numeric.popc({0})", result="u4"))),
    "clz": row(form(INTEGERS, elementwise("numeric.clz({0})", "u=", "u4"))),
    "prmt": row(form(BITS_32, bits.prmt, " ".join(numeric.PRMT))),
    # comparisons, choices, conversions, moves between registers
    "setp": row(form(INTEGERS | FLOATS | HALVES, comparisons.setp, f"{COMPARED} and or xor ftz")),
    "set": row(form(INTEGERS | FLOATS | HALVES, comparisons.set_, f"{COMPARED} and or xor ftz")),
    "selp": row(form(WORDS, elementwise("np.where({2}, {0}, {1})", "= = ?"))),
    "testp": row(form(FLOATS, comparisons.testp, " ".join(comparisons.TESTS))),
    "cvt": row(form(ANY, conversions.cvt, f"{' '.join(conversions.ROUNDINGS)} ftz sat satfinite relu")),
    "cvta": row(form(INTEGERS, movement.cvta, "to global shared shared::cluster local const param")),
    "isspacep": row(form(ANY, movement.isspacep, "global shared shared::cluster local")),
    "mapa": row(form(WHOLE, clusters.mapa, "shared::cluster")),
    "getctarank": row(form(WHOLE, clusters.getctarank, "shared::cluster")),
    "mov": row(form(WORDS, movement.mov)),
    # between the lanes of a warp
    "shfl": row(form(BITS_32, warp_exchanges.shfl, "sync up down bfly idx")),
    "vote": row(form(BITS_32 | PREDICATES, warp_exchanges.vote, "sync all any uni ballot")),
    "match": row(form(INTEGERS, warp_exchanges.match, "sync any all")),
    "redux": row(form(INTEGERS, warp_exchanges.redux, f"sync {' '.join(warp.REDUCTIONS)}")),
    "activemask": row(form(BITS_32, warp_exchanges.activemask)),
    "elect": row(form(ANY, warp_exchanges.elect, "sync")),
    "movmatrix": row(form(BITS_16, matrix_moves.movmatrix, "sync aligned m8n8 trans")),
    "mma": row(form(ANY, tensor.mma, OF_TILES), flops=tensor.flops),
    "wmma": row(
        form(ANY, tensor.wmma, f"load store mma a b c d global shared {OF_TILES}"),
        writes=unless("store"),
        memory="tile",
        flops=tensor.flops,
    ),
    "wgmma": row(
        form(
            ANY,
            wgmma.wgmma,
            f"mma_async fence commit_group wait_group sync aligned e4m3 e5m2 satfinite {wgmma.SHAPES}",
        ),
        writes=when("mma_async"),
        updates=when("mma_async"),
        memory="load",
        flops=wgmma.flops,
    ),
    "ldmatrix": row(form(BITS_16, matrix_moves.ldmatrix, OF_MATRICES), memory="load"),
    "stmatrix": row(form(BITS_16, matrix_moves.stmatrix, OF_MATRICES), writes=never, memory="store"),
    # memory
    "ld": row(
        form(WORDS, movement.load, f"{PLACED} nc"),
        polls=when("volatile", "acquire", "relaxed"),
        memory="load",
    ),
    "ldu": row(form(WORDS, movement.load, f"{PLACED} nc"), memory="load"),
    "st": row(
        form(WORDS, movement.store, f"{PLACED} async mbarrier::complete_tx::bytes"),
        writes=never,
        memory="store",
    ),
    "atom": row(form(INTEGERS | FLOATS | HALVES, atomics.atomic, ATOMIC), polls=always, memory="atomic"),
    "red": row(form(INTEGERS | FLOATS | HALVES, atomics.atomic, ATOMIC), writes=never, memory="atomic"),
    "cp": row(form(ANY, cp_async.cp, f"{COPIED} {IN_BULK}"), writes=never, memory="copy"),
    "prefetch": row(
        form(
            ANY, movement.nothing, "global local param const tensormap L1 L2 L2::evict_last L2::evict_normal"
        ),
        writes=never,
    ),
    "createpolicy": row(
        form(
            INTEGERS,
            movement.cache_policy,
            "fractional range L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged global",
        )
    ),
    # order and control
    "membar": row(form(ANY, movement.fence, "cta gl sys"), writes=never),
    "fence": row(
        form(
            ANY,
            movement.fence,
            f"{SCOPES} gl sc acq_rel acquire release proxy alias async global shared "
            "shared::cluster mbarrier_init tensormap::generic",
        ),
        writes=never,
    ),
    # launches run one after the other on the engine, so there is nothing to wait for
    "griddepcontrol": row(form(ANY, movement.nothing, "launch_dependents wait"), writes=never),
    # a hint: the engine does not limit registers while a kernel runs
    "setmaxnreg": row(form(ANY, movement.nothing, "inc dec sync aligned"), writes=never),
    "nanosleep": row(form(ANY, movement.nothing), writes=never, polls=always),
    **{
        name: row(
            form(
                ANY,
                _at_a_barrier,
                "sync warp red popc and or aligned cta grid cluster arrive wait release acquire relaxed",
            ),
            writes=when("red"),
            barrier=_ends_at_barrier,
        )
        for name in ("bar", "barrier")
    },
    "mbarrier": row(
        form(
            BITS_64,
            mbarrier.mbarrier,
            "init inval arrive arrive_drop noComplete test_wait try_wait parity pending_count "
            "expect_tx complete_tx release acquire relaxed cta cluster shared shared::cluster",
        ),
        writes=mbarrier.has_result,
        polls=when("test_wait", "try_wait"),
    ),
    "bra": row(form(ANY, _ends_its_block, "uni"), writes=never),
    "ret": row(form(ANY, _ends_its_block, "uni"), writes=never),
    "exit": row(form(ANY, _ends_its_block), writes=never),
    "trap": row(form(ANY, external.stop), writes=never),
    "call": row(form(ANY, calls.call, None), writes=never),
    # pseudo-instructions that ptx.inline makes of calls
    "extern": row(form(ANY, external.call, None)),
    "recurse": row(form(ANY, calls.recurse, None)),
    "results": row(form(ANY, calls.results), writes=never),
}
