"""``step(kernel[grid, block], *args)``: a page on which a reader steps through one warp's instructions.

The trace is in the engine's issue order: where lanes of a warp diverge, those at the lowest program counter
go first. A GPU may choose another order; the lanes of each instruction are the same.
"""

from __future__ import annotations

import base64
import io
import linecache
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import PurePath

import numpy as np

from warplab.rendering import render
from warplab.simt.counters.one_warp import NamedRequest, OneWarp, Step
from warplab.simt.engine.indices import SHARED_SYMBOL
from warplab.simt.errors import InvalidLaunch
from warplab.simt.watched import watched

MOST_STEPS = 2000
BLUE, GREY = (0x2A, 0x7F, 0xC4), (0x7D, 0x85, 0x90)  # of the course's palette
MEMORY = ("kind", "space", "width", "name", "shape", "order", "itemsize", "start")
NEAR = 20  # lines of source with instructions that are at most so far apart are shown in one listing


@dataclass(frozen=True)
class ListingLine:
    """One instruction of PTX, and the source line that it came from.

    ``kind`` is "branch", "barrier", "exit" or ""; ``label`` is the label by which branches of the listing
    jump here, or "".
    """

    text: str
    file: int
    line: int
    kind: str = ""
    label: str = ""


@dataclass
class Trace:
    """The first ``steps`` of one warp of a launch, which was issued ``issued`` instructions in all.

    A notebook shows it as a page to step through.
    """

    kernel: str
    arch: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    block_index: tuple[int, int, int]
    warp: int
    threads: int  # lanes of the warp that have a thread: 32, or fewer in a block's last warp
    listing: list[ListingLine]
    steps: list[Step] = field(repr=False)
    issued: int
    sources: list[dict] = field(default_factory=list, repr=False)

    @property
    def cut(self) -> bool:
        return self.issued > len(self.steps)

    @property
    def title(self) -> str:
        bx, by, bz = self.block_index
        where = f"warp {self.warp} of block ({bx}, {by}, {bz})"
        return f"{self.kernel}: {where}, one instruction of PTX at a time"

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """(first step, steps, lanes) of neighbouring steps with the same lanes."""
        out = []
        for lanes, steps in groupby(enumerate(self.steps), lambda numbered: numbered[1].lanes):
            numbers = [number for number, _ in steps]
            out.append((numbers[0], len(numbers), lanes))
        return out

    def as_dict(self) -> dict:
        """The trace as compact plain data, which trace.js reads."""
        memories: list[dict] = []
        asked = {n: [_small(a, memories) for a in s.accesses] for n, s in enumerate(self.steps) if s.accesses}
        return {
            "kernel": self.kernel,
            "arch": self.arch,
            "grid": self.grid,
            "block": self.block,
            "blockIndex": self.block_index,
            "warp": self.warp,
            "threads": self.threads,
            "issued": self.issued,
            "sources": self.sources,
            "listing": [[i.text, i.file, i.line, i.kind, i.label] for i in self.listing],
            "places": _in_order([step.place for step in self.steps]),
            "runs": [(first, lanes) for first, _, lanes in self.runs],
            "jumps": {n: step.jumps for n, step in enumerate(self.steps) if step.jumps is not None},
            "memories": memories,
            "accesses": asked,
        }

    def __str__(self) -> str:
        out = [self.title]
        for number, step in enumerate(self.steps):
            at = self.listing[step.place]
            out.append(f"{number + 1:>5}  line {at.line:<4} {step.lanes.bit_count():>2} lanes  {at.text}")
        return "\n".join([*out, *([self.note] if self.cut else [])])

    @property
    def note(self) -> str:
        """The sentence under a trace that was cut off at ``most`` steps."""
        kept, issued = len(self.steps), self.issued
        return (
            f"The first {kept:,} of {issued:,} instructions that the warp was issued; for more of them, "
            f"most={issued:,}, or a smaller problem"
        )

    @property
    def lines(self) -> list[tuple[int, str, int, float]]:
        """(number, text, instructions, mean lanes) of each line of source in the listing."""
        issued, lanes = Counter(), Counter()
        for one in self.steps:
            at = self.listing[one.place]
            issued[at.file, at.line] += 1
            lanes[at.file, at.line] += one.lanes.bit_count()
        out = []
        for part in self.sources:
            for number, text in enumerate(part["lines"], part["first"]):
                n = issued[part["file"], number]
                out.append((number, text, n, lanes[part["file"], number] / n if n else 0.0))
        return out

    @property
    def map(self) -> str:
        """A picture as a data address: a row a lane, a column a step, filled where the lane takes part."""
        from PIL import Image  # imported late: it is slow, and `import warplab` need not wait for it

        masks = np.array([one.lanes for one in self.steps], np.int64)
        active = masks[None, :] >> np.arange(32)[:, None] & 1
        image = Image.fromarray(active.astype(np.uint8), "P")
        image.putpalette([*GREY, *BLUE])
        png = io.BytesIO()
        image.save(png, "PNG", transparency=bytes([60, 255]), optimize=True)
        return f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"

    @property
    def map_alt(self) -> str:
        """The alternative text of ``map``."""
        share = sum(one.lanes.bit_count() for one in self.steps) / (32 * len(self.steps))
        return (
            f"32 rows, one a lane, over {len(self.steps):,} instructions of PTX; filled where the lane takes "
            f"part, which is {share:.0%} of the area"
        )

    def _repr_html_(self) -> str:
        return render("warplab.simt", "trace.html.j2", trace=self)


def step(
    launcher,
    *args,
    block_index=0,
    warp: int = 0,
    most: int = MOST_STEPS,
    arch: str | None = None,
    **constants,
) -> Trace:
    """Run ``launcher(*args)`` once on the SIMT engine and return what one warp did, step by step.

    ``launcher``, ``args``, ``arch`` and ``constants`` are those of ``profile``; the arrays hold the kernel's
    results afterwards. ``block_index`` is a number or (x, y, z), ``warp`` the number of a warp in that block;
    at most ``most`` steps are kept. The steps of a recursive call come before those of the calling code.

    Raises InvalidLaunch for a block or a warp that the launch does not have, and what ``profile`` raises.
    """
    if most < 1:
        raise InvalidLaunch(f"most={most} keeps no step; give a number of instructions, such as {MOST_STEPS}")
    observer = OneWarp(_three(block_index), warp, most)
    machine, target = watched(launcher, args, constants, arch, (observer,))
    kernel = getattr(launcher, "kernel", None)
    return _trace(observer, machine, target.arch, getattr(kernel, "source", "").splitlines())


def _trace(seen: OneWarp, machine, arch: str, text: list[str]) -> Trace:
    """The observed warp as a Trace, its listing in program order. ``text``: the source's lines, if they are
    not in a file.
    """
    program = machine.program
    order = sorted(range(len(seen.listing)), key=lambda n: _rank(*seen.listing[n]))
    moved = {old: new for new, old in enumerate(order)}
    jumps = (b for b, i in seen.listing if i is b.branch and b.end in ("branch", "jump"))
    labels = {b.target: b.branch.operands[0].name for b in jumps if b.branch.operands}
    files: dict[str, int] = {}
    listing = []
    for block, instr in (seen.listing[n] for n in order):
        label = labels.pop(block.index, "")
        if instr is block:
            listing.append(ListingLine("ret", 0, 0, "exit", label))
            continue
        words = SHARED_SYMBOL.sub(lambda found: found[1] or found[0], instr.text)
        words = " ".join(words.replace(f"{program.entry}_param", "param").split())
        ends = {"barrier": "barrier", "syncwarp": ""}.get(block.end, "branch")
        kind = ends if instr is block.branch else ""
        number = files.setdefault(program.file_of(instr.file), len(files))
        listing.append(ListingLine(words, number, instr.line, kind, label))
    return Trace(
        kernel=program.name,
        arch=arch,
        grid=tuple(machine.launch.grid),
        block=tuple(machine.launch.block),
        block_index=seen.block,
        warp=seen.warp,
        threads=seen.threads,
        listing=listing,
        steps=[replace(one, place=moved[one.place]) for one in seen.steps],
        issued=seen.issued,
        sources=_sources(files, listing, text),
    )


def _rank(block, instr) -> tuple[int, int]:
    """A sort key: the instruction's basic block, and its position in it."""
    code = [*block.instrs, block.branch, block]
    return block.index, next(n for n, one in enumerate(code) if one is instr)


def _small(access: NamedRequest, memories: list[dict]) -> list:
    """[index in ``memories``, lanes, offsets, cost] of an access; evenly spaced offsets as their first and
    their distance. What several accesses share (MEMORY) is kept once, in ``memories``.
    """
    common = {name: getattr(access, name) for name in MEMORY}
    if common not in memories:
        memories.append(common)
    first, *others = access.offsets
    apart = others[0] - first if others else 0
    even = all(b - a == apart for a, b in zip(access.offsets, others))
    offsets = {"first": first, "apart": apart} if even else access.offsets
    return [memories.index(common), access.lanes, offsets, access.cost]


def _in_order(places: list[int]) -> list[tuple[int, int]]:
    """(first, length) of each run of consecutive places."""
    runs = []
    for _, steps in groupby(enumerate(places), lambda numbered: numbered[1] - numbered[0]):
        run = [place for _, place in steps]
        runs.append((run[0], len(run)))
    return runs


def _sources(files: dict[str, int], listing: list[ListingLine], text: list[str]) -> list[dict]:
    """The source lines that the listing came from, by file, in stretches that include short gaps (NEAR)."""
    out = []
    for path, number in files.items():
        found = []
        for line in sorted({i.line for i in listing if i.file == number and i.line}):
            if found and line - found[-1][-1] <= NEAR:
                found[-1] = range(found[-1][0], line + 1)
            else:
                found.append(range(line, line + 1))
        for lines in found:
            read = [linecache.getline(path, n).rstrip("\n") for n in lines]
            if not any(read):
                read = [text[n - 1] if n <= len(text) else "" for n in lines]
            out.append({"file": number, "name": PurePath(path).name, "first": lines[0], "lines": read})
    return out


def _three(index) -> tuple[int, int, int]:
    given = (index,) if isinstance(index, int | np.integer) else tuple(index)
    x, y, z = (*map(int, given), 0, 0, 0)[:3]
    return x, y, z
