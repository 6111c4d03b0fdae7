"""Control flow: a function's body as basic blocks, with the registers that are live at their beginnings."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

from warplab.simt.ptx.dataflow import backward
from warplab.simt.ptx.effects import EffectsByOpcode, effects_of
from warplab.simt.ptx.parser import Function, Instr, Reg, Sym, leaves

ROUTINE = "$routine_"  # the label where a recursive function's own code begins


@dataclass
class BasicBlock:
    """Straight-line instructions and how control leaves them.

    ``end`` is "fall" | "jump" | "branch" | "barrier" | "syncwarp" | "exit"; ``target`` is the index of the
    block that a jump or a taken branch goes to, ``next`` that of the following block. ``branch`` is the
    instruction that ends the block, a jump, branch or barrier (for its guard and its source line).
    """

    index: int
    instrs: list[Instr] = field(default_factory=list)
    end: str = "fall"
    target: int = -1
    branch: Instr | None = None
    live_in: frozenset[str] = frozenset()
    polls: bool = False  # has an instruction with which spinning threads poll
    routine: str = ""  # the recursive function that starts here
    plain_barrier: bool = False  # a barrier of all threads of the block or grid that computes nothing

    @property
    def next(self) -> int:
        return self.index + 1

    @property
    def size(self) -> int:
        """The number of instructions, the one that ends the block included."""
        return len(self.instrs) + (self.branch is not None) + (self.end == "exit")


def registers_read(instr: Instr, table: EffectsByOpcode) -> set[str]:
    """Names of the registers that an instruction reads, its guard included."""
    row = effects_of(instr, table)
    skips = row.writes(instr) and not row.updates(instr)
    names = _registers(instr.operands[1:] if skips else instr.operands)
    return names if instr.guard is None else names | {instr.guard.name}


def registers_written(instr: Instr, table: EffectsByOpcode) -> set[str]:
    """Names of the registers that an instruction writes."""
    return _registers(instr.operands[:1]) if effects_of(instr, table).writes(instr) else set()


def _registers(operands) -> set[str]:
    return {op.name for op in leaves(*operands) if isinstance(op, Reg) and op.name != "_"}


def split(fn: Function, table: EffectsByOpcode) -> list[BasicBlock]:
    """Basic blocks in program order, so that running the lowest index first makes diverged lanes reconverge.

    A guarded instruction becomes a block of its own after a branch by which the lanes with a false guard skip
    it.
    """
    blocks = [BasicBlock(0)]
    labels: dict[str, int] = {}
    jumps: list[tuple[BasicBlock, str]] = []

    def new() -> BasicBlock:
        blocks.append(BasicBlock(len(blocks)))
        return blocks[-1]

    def put(block: BasicBlock, instr: Instr) -> None:
        if instr.opcode in ("ret", "exit"):
            block.end = "exit"
        elif end := _end_at(instr, table):
            block.end, block.branch = end, instr
        else:
            block.instrs.append(instr)

    current = blocks[0]
    for item in fn.body:
        if current.end != "fall" or isinstance(item, str) and current.instrs:
            current = new()
        if isinstance(item, str):
            labels[item] = current.index
        elif item.opcode == "bra":
            current.end = "branch" if item.guard else "jump"
            current.branch = item
            target = item.operands[0]
            jumps.append((current, target.name if isinstance(target, Sym) else str(target)))
        elif item.guard is not None:
            current.end, current.branch = "branch", _skip(item, item.guard)
            head = current
            put(new(), replace(item, guard=None))
            current = new()
            head.target = current.index
        else:
            put(current, item)
    if blocks[-1].end in ("branch", "barrier", "syncwarp"):  # a body need not end in ret
        new()
    if blocks[-1].end == "fall":
        blocks[-1].end = "exit"
    for block, label in jumps:
        block.target = labels[label]
    for label, index in labels.items():
        if label.startswith(ROUTINE):
            blocks[index].routine = label.removeprefix(ROUTINE)
    _describe(blocks, table)
    return blocks


def _skip(instr: Instr, guard: Reg) -> Instr:
    """The branch by which the lanes whose ``guard`` is false skip an instruction."""
    unless, text = Reg(guard.name, not guard.negated), f"(guard of) {instr.text}"
    return replace(instr, opcode="bra", mods=(), operands=(), guard=unless, text=text)


def _end_at(instr: Instr, table: EffectsByOpcode) -> str:
    """How a block ends at this instruction: "barrier", "syncwarp", or "" if it is no barrier."""
    if instr.opcode == "bar" and "warp" in instr.mods:
        return "syncwarp"
    return "barrier" if effects_of(instr, table).barrier(instr) else ""


def _describe(blocks: list[BasicBlock], table: EffectsByOpcode) -> None:
    """Set each block's ``polls``, ``plain_barrier`` and ``live_in``."""
    for block in blocks:
        block.polls = any(effects_of(instr, table).polls(instr) for instr in block.instrs)
        block.plain_barrier = block.end == "barrier" and block.branch is not None and _takes_all(block.branch)
    _liveness(blocks, table)


def _takes_all(barrier: Instr) -> bool:
    """Whether a barrier waits for all threads of the block or the grid and computes nothing.

    Not a cluster's barrier, which each cluster passes on its own.
    """
    plain = "red" not in barrier.mods and "cluster" not in barrier.mods
    return plain and ("grid" in barrier.mods or len(barrier.operands) < 2)


def successors(block: BasicBlock) -> list[int]:
    """Indices of the blocks that can follow."""
    return {
        "fall": [block.next],
        "barrier": [block.next],
        "syncwarp": [block.next],
        "jump": [block.target],
        "branch": [block.target, block.next],
        "exit": [],
    }[block.end]


def _liveness(blocks: list[BasicBlock], table: EffectsByOpcode) -> None:
    use, define = [], []
    for b in blocks:
        read: set[str] = set()
        written: set[str] = set()
        for i in b.instrs if b.branch is None else [*b.instrs, b.branch]:
            read |= registers_read(i, table) - written
            written |= registers_written(i, table)
        use.append(read)
        define.append(written)
    after = [successors(b) for b in blocks]
    live = backward(after, use, lambda b, after: use[b] | (set().union(*after) - define[b]))
    for b, names in zip(blocks, live):
        b.live_in = frozenset(n for n in names if not is_special(n))


SPECIAL = frozenset(
    "tid ntid ctaid nctaid laneid warpid nwarpid smid nsmid gridid dynamic_smem_size total_smem_size envreg1 "
    "envreg2 clusterid nclusterid cluster_ctaid cluster_nctaid cluster_ctarank cluster_nctarank "
    "is_explicit_cluster".split()
)
SPECIAL_BEGINNINGS = "lanemask_", "clock", "globaltimer", "reserved_smem"


def loads_parameter(instr: Instr) -> bool:
    """Whether it is an ``ld.param`` by the name of a parameter (or of a call's result)."""
    return instr.opcode == "ld" and "param" in instr.mods and isinstance(instr.operands[1].base, Sym)


@functools.lru_cache(maxsize=1 << 14)
def is_special(name: str) -> bool:
    """Whether a register is one that the hardware provides, such as ``%tid.x``."""
    stem = name.lstrip("%").split(".")[0]
    return stem in SPECIAL or stem.startswith(SPECIAL_BEGINNINGS)
