"""Control flow: a function's body as basic blocks, with the registers that are live where a block begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from .parser import Function, Instr, Mem, Reg, Sym, Vec

BARRIERS = {"bar", "barrier"}
ROUTINE = "$routine_"  # the label where a recursive function's own code begins
NO_RESULT = {"st", "red", "bra", "bar", "barrier", "ret", "exit", "trap", "membar", "fence", "call", "nanosleep", "prefetch", "results"}


@dataclass
class Block:
    """Straight-line instructions and how control leaves them.

    ``end`` is "fall" | "jump" | "branch" | "barrier" | "exit"; ``target`` is the taken block of a jump or branch and
    ``next`` the block below. A conditional ``branch`` carries its instruction (for the guard and the source line).
    """

    index: int
    instrs: list[Instr] = field(default_factory=list)
    end: str = "fall"
    target: int = -1
    branch: Instr | None = None
    live_in: frozenset[str] = frozenset()
    polls: bool = False  # has an instruction that a spinning thread uses to look again
    routine: str = ""  # the recursive function that starts here
    plain_barrier: bool = False  # all threads of the block, nothing to compute

    @property
    def next(self) -> int:
        return self.index + 1

    @property
    def size(self) -> int:
        """Instructions, the one that leaves the block included."""
        return len(self.instrs) + (self.branch is not None) + (self.end == "exit")


def has_result(instr: Instr) -> bool:
    """Whether the first operand is written."""
    return instr.opcode not in NO_RESULT or (instr.opcode in BARRIERS and "red" in instr.mods)


def registers_read(instr: Instr) -> set[str]:
    """Names of the registers that an instruction reads, its guard included."""
    names = set()

    def visit(op, destination):
        if isinstance(op, Reg):
            if not destination and op.name != "_":
                names.add(op.name)
        elif isinstance(op, Mem):
            visit(op.base, False)
        elif isinstance(op, Vec):
            for item in op.items:
                visit(item, destination)

    for i, op in enumerate(instr.operands):
        if not isinstance(op, str):
            visit(op, i == 0 and has_result(instr))
    if instr.guard is not None:
        names.add(instr.guard.name)
    return names


def registers_written(instr: Instr) -> set[str]:
    """Names of the registers that an instruction writes."""
    if not has_result(instr) or not instr.operands:
        return set()
    first = instr.operands[0]
    items = first.items if isinstance(first, Vec) else (first,)
    return {op.name for op in items if isinstance(op, Reg) and op.name != "_"}


def split(fn: Function) -> list[Block]:
    """Basic blocks in program order, so that the lowest index first is also the point where lanes meet again.

    An instruction under a guard becomes a block of its own behind a branch: the lanes whose guard is false skip it.
    """
    blocks = [Block(0)]
    labels: dict[str, int] = {}
    jumps: list[tuple[Block, str]] = []

    def new() -> Block:
        blocks.append(Block(len(blocks)))
        return blocks[-1]

    current = blocks[0]
    for item in fn.body:
        if isinstance(item, str):
            if current.instrs or current.end != "fall":
                current = new()
            labels[item] = current.index
            continue
        if current.end != "fall":
            current = new()
        if item.opcode == "bra":
            current.end = "branch" if item.guard else "jump"
            current.branch = item
            target = item.operands[0]
            jumps.append((current, target.name if isinstance(target, Sym) else str(target)))
        elif item.guard is not None:
            skip = Instr("bra", (), (), Reg(item.guard.name, not item.guard.negated), item.line, item.file, f"(guard of) {item.text}")
            current.end, current.branch = "branch", skip
            head, guarded = current, new()
            bare = Instr(item.opcode, item.mods, item.operands, None, item.line, item.file, item.text)
            if item.opcode in ("ret", "exit"):
                guarded.end = "exit"
            elif is_barrier(item):
                guarded.end, guarded.branch = "barrier", bare
            else:
                guarded.instrs.append(bare)
            current = new()
            head.target = current.index
        elif item.opcode in ("ret", "exit"):
            current.end = "exit"
        elif is_barrier(item):
            current.end, current.branch = "barrier", item
        else:
            current.instrs.append(item)
    if blocks[-1].end == "fall":
        blocks[-1].end = "exit"
    for block, label in jumps:
        block.target = labels[label]
    for label, index in labels.items():
        if label.startswith(ROUTINE):
            blocks[index].routine = label.removeprefix(ROUTINE)
    for block in blocks:
        block.polls = _polls(block)
        if block.end == "barrier":
            mods = block.branch.mods
            block.plain_barrier = "red" not in mods and ("grid" in mods or len(block.branch.operands) < 2)
    _liveness(blocks)
    return blocks


def is_barrier(instr: Instr) -> bool:
    """A barrier of a thread block or the grid; ``bar.warp.sync``, ``bar.arrive`` and clusters' are ordinary instructions."""
    return instr.opcode in BARRIERS and not {"warp", "arrive", "cluster"} & set(instr.mods)


def _polls(block: Block) -> bool:
    return any(
        i.opcode in ("atom", "nanosleep") or (i.opcode == "ld" and {"volatile", "acquire", "relaxed"} & set(i.mods)) for i in block.instrs
    )


def successors(block: Block) -> list[int]:
    """Indices of the blocks that can follow."""
    return {
        "fall": [block.next],
        "barrier": [block.next],
        "jump": [block.target],
        "branch": [block.target, block.next],
        "exit": [],
    }[block.end]


def _liveness(blocks: list[Block]) -> None:
    use, define = [], []
    for b in blocks:
        read: set[str] = set()
        written: set[str] = set()
        for i in b.instrs:
            read |= registers_read(i) - written
            written |= registers_written(i)
        if b.branch is not None:
            read |= registers_read(b.branch) - written
            written |= registers_written(b.branch)
        use.append(read)
        define.append(written)
    live = [set(u) for u in use]
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks):
            out = set().union(*(live[s] for s in successors(b))) if b.end != "exit" else set()
            new = use[b.index] | (out - define[b.index])
            if new != live[b.index]:
                live[b.index] = new
                changed = True
    for b, names in zip(blocks, live):
        b.live_in = frozenset(n for n in names if not is_special(n))


SPECIAL = (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "laneid",
    "warpid",
    "nwarpid",
    "lanemask_",
    "clock",
    "globaltimer",
    "smid",
    "nsmid",
    "gridid",
    "dynamic_smem_size",
    "total_smem_size",
    "envreg1",
    "envreg2",
)


def is_special(name: str) -> bool:
    """True of ``%tid.x`` and its kin, which the hardware provides."""
    stem = name.lstrip("%").split(".")[0]
    return stem in SPECIAL or stem.startswith(("lanemask_", "clock", "globaltimer"))
