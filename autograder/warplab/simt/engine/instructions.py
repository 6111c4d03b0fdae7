"""The table of instructions: what the engine executes, and all that it knows of each.
A new instruction is a row here.

A row names its types and the handler for each family of them; the last type that an instruction names
decides. The handler writes the Python for it (``translate``). The other columns are ``ptx.effects``': whether
the first operand is written, floating-point operations of a lane, polling, barriers, memory. A PTX
instruction that is not in the table is refused by name, and so is a type that its row has not.

The table stands above ``ptx``, which is given it as data, and above the handlers; ``counters`` and
``sanitizer`` read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    movement,
    packed,
    tensor,
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
BITS_16, BITS_32 = frozenset({"b16"}), frozenset({"b32"})
WHOLE_32 = frozenset({"s32", "u32"})
SINGLE = frozenset({"f32"})


@dataclass(frozen=True, kw_only=True)
class Instruction(Effects):
    """A row: ``handlers`` by family of types, and the effects."""

    handlers: Mapping[frozenset, Handler]

    def handler(self, instr: Instr) -> Handler | None:
        """The handler for the last type that an instruction names, None if the row has not that type."""
        kind = last_type(instr.mods)
        return next((handler for types, handler in self.handlers.items() if kind in types), None)


def computes(handlers: Mapping[frozenset, Handler], *, flops: Flops) -> Instruction:
    """The row of an instruction between registers: it writes its first operand, and that is all it does."""
    return Instruction(
        handlers=handlers, writes=always, flops=flops, polls=never, barrier=never, memory="none"
    )


def acts(handler: Handler) -> Instruction:
    """The row of an instruction that writes nothing and that counters and checks need not know."""
    return Instruction(
        handlers={ANY: handler}, writes=never, flops=no_flops, polls=never, barrier=never, memory="none"
    )


def moves_tile(
    handlers: Mapping[frozenset, Handler], *, writes: Condition, memory: Memory, flops: Flops
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
            INTEGERS: arithmetic.wrapping("add"),
            FLOATS: floats("{0} + {1}"),
            HALVES: fp16.arithmetic("{0} + {1}"),
            PAIRS: packed.in_pairs("add"),
        },
        flops=flops(1),
    ),
    "sub": computes(
        {
            INTEGERS: arithmetic.wrapping("sub"),
            FLOATS: floats("{0} - {1}"),
            HALVES: fp16.arithmetic("{0} - {1}"),
        },
        flops=flops(1),
    ),
    "mul": computes(
        {
            INTEGERS: arithmetic.multiply,
            FLOATS: floats("{0} * {1}"),
            HALVES: fp16.arithmetic("{0} * {1}"),
        },
        flops=flops(1),
    ),
    "mad": computes(
        {INTEGERS: arithmetic.multiply_add, FLOATS: floats("numeric.fma({0}, {1}, {2})")},
        flops=flops(2),
    ),
    "fma": computes(
        {
            FLOATS: floats("numeric.fma({0}, {1}, {2})"),
            HALVES: fp16.arithmetic("numeric.fma_odd({0}.astype('f8'), {1}, {2})"),
        },
        flops=flops(2),
    ),
    "addc": computes({INTEGERS: arithmetic.carried("add", takes=True)}, flops=no_flops),
    "subc": computes({INTEGERS: arithmetic.carried("sub", takes=True)}, flops=no_flops),
    "madc": computes({INTEGERS: arithmetic.carried("mad", takes=True)}, flops=no_flops),
    "div": computes(
        {INTEGERS: elementwise("numeric.idiv({0}, {1})"), FLOATS: floats("{0} / {1}")}, flops=flops(1)
    ),
    "rem": computes({INTEGERS: elementwise("numeric.irem({0}, {1})")}, flops=no_flops),
    "abs": computes(
        {
            INTEGERS | FLOATS: elementwise("np.abs({0})"),
            HALVES: fp16.sign_bits("{0} & ~{1}"),
        },
        flops=no_flops,
    ),
    "neg": computes(
        {
            INTEGERS | FLOATS: elementwise("np.negative({0})"),
            HALVES: fp16.sign_bits("{0} ^ {1}"),
        },
        flops=no_flops,
    ),
    "min": computes(
        {
            INTEGERS: arithmetic.integers_smaller_or_larger("min"),
            FLOATS: arithmetic.floats_smaller_or_larger("least"),
            HALVES: fp16.smaller_or_larger("least"),
            PAIRS: packed.in_pairs("minimum"),
        },
        flops=no_flops,
    ),
    "max": computes(
        {
            INTEGERS: arithmetic.integers_smaller_or_larger("max"),
            FLOATS: arithmetic.floats_smaller_or_larger("greatest"),
            HALVES: fp16.smaller_or_larger("greatest"),
            PAIRS: packed.in_pairs("maximum"),
        },
        flops=no_flops,
    ),
    "copysign": computes(
        {FLOATS: elementwise("np.copysign({1}, {0})")}, flops=no_flops
    ),  # the sign of the first source
    "dp4a": computes({WHOLE_32: packed.dot}, flops=no_flops),
    "dp2a": computes({WHOLE_32: packed.dot}, flops=no_flops),
    "sad": computes({INTEGERS: packed.sad}, flops=no_flops),
    **{
        f"{name}{parts}": computes({WHOLE_32: packed.video}, flops=no_flops)
        for name in packed.VIDEO
        for parts in (2, 4)
    },
    # special functions
    "sqrt": computes({FLOATS: floats("np.sqrt({0})")}, flops=flops(1)),
    "rcp": computes({FLOATS: floats("(np.ones(1, '{dtype}') / {0})")}, flops=flops(1)),
    "rsqrt": computes({FLOATS: elementwise("numeric.approx(numeric.rsqrt, {0})")}, flops=flops(1)),
    "lg2": computes({SINGLE: elementwise("numeric.approx(np.log2, {0})")}, flops=flops(1)),
    "sin": computes({SINGLE: elementwise("numeric.approx(np.sin, {0})")}, flops=flops(1)),
    "cos": computes({SINGLE: elementwise("numeric.approx(np.cos, {0})")}, flops=flops(1)),
    "ex2": computes(
        {
            SINGLE: elementwise("numeric.approx(np.exp2, {0})"),
            HALVES: fp16.arithmetic("np.exp2({0}.astype('f8'))"),
        },
        flops=flops(1),
    ),
    "tanh": computes(
        {
            SINGLE: elementwise("numeric.approx(np.tanh, {0})"),
            HALVES: fp16.arithmetic("np.tanh({0}.astype('f8'))"),
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
    "shf": computes({BITS_32: bits.shf}, flops=no_flops),
    "bfe": computes({INTEGERS: bits.bfe}, flops=no_flops),
    "bfi": computes({INTEGERS: bits.bfi}, flops=no_flops),
    "bmsk": computes({BITS_32: bits.bmsk}, flops=no_flops),
    "bfind": computes({INTEGERS: bits.bfind}, flops=no_flops),
    "brev": computes({INTEGERS: elementwise("numeric.brev({0})")}, flops=no_flops),
    "popc": computes({INTEGERS: bits.popc}, flops=no_flops),
    "clz": computes({INTEGERS: bits.clz}, flops=no_flops),
    "prmt": computes({BITS_32: bits.prmt}, flops=no_flops),
    # comparisons, choices, conversions, moves between registers
    "setp": computes({INTEGERS | FLOATS | HALVES: comparisons.setp}, flops=no_flops),
    "set": computes({INTEGERS | FLOATS | HALVES: comparisons.set_}, flops=no_flops),
    "selp": computes({WORDS: comparisons.selp}, flops=no_flops),
    "testp": computes({FLOATS: comparisons.testp}, flops=no_flops),
    "cvt": computes({ANY: conversions.cvt}, flops=no_flops),
    "cvta": computes({INTEGERS: movement.cvta}, flops=no_flops),
    "mov": computes({WORDS: movement.mov}, flops=no_flops),
    # between the lanes of a warp
    "shfl": computes({BITS_32: warp_exchanges.shfl}, flops=no_flops),
    "vote": computes({BITS_32 | PREDICATES: warp_exchanges.vote}, flops=no_flops),
    "match": computes({INTEGERS: warp_exchanges.match}, flops=no_flops),
    "redux": computes({INTEGERS: warp_exchanges.redux}, flops=no_flops),
    "activemask": computes({BITS_32: warp_exchanges.activemask}, flops=no_flops),
    "elect": computes({ANY: warp_exchanges.elect}, flops=no_flops),
    "movmatrix": computes({BITS_16: matrix_moves.movmatrix}, flops=no_flops),
    "mma": computes({ANY: tensor.mma}, flops=tensor.flops),
    "wmma": moves_tile({ANY: tensor.wmma}, writes=unless("store"), memory="tile", flops=tensor.flops),
    "ldmatrix": moves_tile({BITS_16: matrix_moves.ldmatrix}, writes=always, memory="load", flops=no_flops),
    "stmatrix": moves_tile({BITS_16: matrix_moves.stmatrix}, writes=never, memory="store", flops=no_flops),
    # memory
    "ld": Instruction(
        handlers={WORDS: movement.load},
        writes=always,
        flops=no_flops,
        polls=when("volatile", "acquire", "relaxed"),
        barrier=never,
        memory="load",
    ),
    "ldu": Instruction(
        handlers={WORDS: movement.load},
        writes=always,
        flops=no_flops,
        polls=never,
        barrier=never,
        memory="load",
    ),
    "st": Instruction(
        handlers={WORDS: movement.store},
        writes=never,
        flops=no_flops,
        polls=never,
        barrier=never,
        memory="store",
    ),
    "atom": Instruction(
        handlers={INTEGERS | FLOATS | HALVES: atomics.atomic},
        writes=always,
        flops=no_flops,
        polls=always,
        barrier=never,
        memory="atomic",
    ),
    "red": Instruction(
        handlers={INTEGERS | FLOATS | HALVES: atomics.atomic},
        writes=never,
        flops=no_flops,
        polls=never,
        barrier=never,
        memory="atomic",
    ),
    "cp": moves_tile({ANY: cp_async.cp}, writes=never, memory="copy", flops=no_flops),
    "prefetch": acts(movement.nothing),
    # order and control
    "membar": acts(movement.fence),
    "fence": acts(movement.fence),
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
            handlers={ANY: handler},
            writes=when("red"),
            flops=no_flops,
            polls=never,
            barrier=unless("warp", "arrive", "cluster"),
            memory="none",
        )
        for name, handler in (("bar", movement.warp_barrier), ("barrier", _ends_its_block))
    },
    "bra": acts(_ends_its_block),
    "ret": acts(_ends_its_block),
    "exit": acts(_ends_its_block),
    "trap": acts(external.stop),
    "call": acts(calls.call),
    # what ptx.inline makes of calls
    "extern": computes({ANY: external.call}, flops=no_flops),
    "recurse": computes({ANY: calls.recurse}, flops=no_flops),
    "results": acts(calls.results),
}
