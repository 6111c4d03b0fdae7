"""Draws a small launch: threads as dots, arrays as rows of elements, each read and write as a line.

`traced` runs a kernel on the engine and records which thread accessed which element; `picture` draws that, or
only threads and arrays. The run has no bounds checks, so that it finishes: there is spare memory behind each
array, and accesses to it are drawn outside.
"""

import math
from dataclasses import dataclass, field
from html import escape

import numpy as np

from warplab.crossing.execute import parameters
from warplab.crossing.values import filled
from warplab.simt.engine.address_space import AddressSpace, as_bytes
from warplab.simt.engine.indices import array_at, index_text, last_index
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.observer import Observer

WIDTH, GUTTER = 360, 50  # pixels of a picture (it fits a phone), and of the names on its left
SPARE = 4096  # bytes of spare memory behind each array
TEXT, SMALL, FONT = 12.2, 11.8, "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
PLACE, TALL, FALL = 26, 20, 44  # pixels: an element at its widest, a row's height, the space for lines
NARROW = 14  # an element narrower than this is drawn without its number
BETWEEN = 6  # pixels between two groups of elements, such as rows of an image


@dataclass(frozen=True)
class DrawnTouch:
    """One access: a thread (numbered over all blocks) at one element of an array or of its shared table."""

    thread: int
    block: int
    kind: str
    name: str
    place: int


@dataclass
class TouchTracer(Observer):
    """An observer that records the accesses of each thread in order, each once."""

    threads: int
    touches: dict = field(default_factory=dict)

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space not in ("global", "shared"):
            return
        raw = access.offset if space == "global" else access.source.view(np.int64)
        apart = machine.warps // machine.blocks
        for byte, warp, lane in zip(
            np.broadcast_to(raw + offset, group.warp.shape), group.warp, group.column, strict=True
        ):
            block = machine.first_block + int(warp) // apart
            thread = block * self.threads + 32 * (int(warp) % apart) + int(lane)
            if space == "global":
                name, place = access.region.label, int(byte) // access.region.itemsize
            else:
                table = array_at(machine.program.shared_arrays, int(byte))
                if table is None:
                    continue
                name, place = table.name or "table", (int(byte) - table.start) // (table.itemsize or width)
            self.touches[DrawnTouch(thread, block, what, name, place)] = True


@dataclass(frozen=True)
class DrawnRun:
    """The result of a launch: touches in order, {output: values}, {shared table: its length}, its error."""

    touches: tuple
    values: dict
    tables: dict
    error: str = ""

    def writes(self, name, place):
        """The touches that wrote or added to this element of an output, in order."""
        return [t for t in self.touches if (t.name, t.place) == (name, place) and t.kind != "read"]

    def wrong(self, name, want):
        """The elements of an output that are wrong."""
        got = self.values[name].ravel()
        return [n for n, value in enumerate(want.ravel()) if not self.writes(name, n) or got[n] != value]


def traced(kernel, arguments, buffers, grid, block):
    """Run a warplab.crossing.orders.Kernel; returns its DrawnRun.

    arguments: names of buffers and (dtype, number) pairs, in order. buffers: {name: array or Empty}.
    """
    space, arrays, placed = AddressSpace(), {}, {}
    for name, buffer in buffers.items():
        first = filled(buffer)
        room = np.zeros(first.nbytes + SPARE, np.uint8)
        room[: first.nbytes] = first.reshape(-1).view(np.uint8)
        array = arrays[name] = room[: first.nbytes].view(first.dtype).reshape(first.shape)
        region = space.add(as_bytes(room), name)
        region.itemsize, placed[name] = first.itemsize, (region.base, array)
    program = Program(kernel.modules[0], kernel.entry, kernel.name, space, kernel.modules[1:])
    located = [placed[one] if type(one) is str else one for one in arguments]
    values = parameters(kernel, program, located)
    names = [param.name for param in program.function.params]
    seen = TouchTracer(math.prod(block))
    params: dict = dict(zip(names, values, strict=True))
    launch = Launch(three(grid), three(block), 0, params)
    machine, error = Machine(program, space, launch, (seen,), None), ""
    try:
        machine.run()
    except Exception as problem:  # noqa: BLE001 - whatever stops the kernel; the table below the picture tells it
        error = str(problem)
    tables = {one.name or "table": one.size // (one.itemsize or 4) for one in program.shared_arrays}
    return DrawnRun(tuple(seen.touches), arrays, tables, error)


def three(dims):
    """Dimensions of a launch extended to three numbers."""
    x, y, z = ([int(n) for n in np.atleast_1d(dims)] + [1, 1])[:3]
    return x, y, z


@dataclass
class DrawnRow:
    """The layout of a row of elements or threads: centre of each, width of one, y where lines begin."""

    middles: list
    wide: float
    top: float
    bottom: float

    def at(self, place):
        """The centre of an element; for one before or behind the row, a point just outside it."""
        if 0 <= place < len(self.middles):
            return self.middles[place]
        past = self.middles[-1] + self.wide * (1 + min(place - len(self.middles), 3) / 2)
        return GUTTER if place < 0 else min(WIDTH - 2, past)


def _row(count, group, top):
    """The DrawnRow of `count` elements in groups of `group`, centred, with space behind it."""
    gaps = max(-(-count // group) - 1, 0) * BETWEEN
    room = WIDTH - GUTTER - gaps - 14
    wide = min(PLACE, room / count)
    left = GUTTER + (room - wide * count) / 2
    middles = [left + wide * (n + 0.5) + n // group * BETWEEN for n in range(count)]
    return DrawnRow(middles, wide, top, top + TALL)


def picture(scene, run=None):
    """(SVG, description in sentences) of a Scene and, with a run, of its threads' accesses."""
    return _Drawing(scene, run).made()


@dataclass(frozen=True)
class Scene:
    """What a picture shows without a run: {input: values}, {output: expected values}, and the launch."""

    inputs: dict
    outputs: dict
    grid: tuple
    block: tuple

    @property
    def threads(self):
        return math.prod(self.grid) * math.prod(self.block)

    @property
    def launch(self):
        """ "8 threads in 2 blocks"."""
        blocks = math.prod(self.grid)
        return f"{self.threads} threads in {blocks} block{'s' if blocks > 1 else ''}"


class _Drawing:
    def __init__(self, scene, run):
        self.scene, self.run, self.body = scene, run, []
        self.wrong = {name: run.wrong(name, want) for name, want in scene.outputs.items()} if run else {}

    def made(self):
        top, rows = 3, {}
        for name, array in self.scene.inputs.items():
            rows[name] = self._cells(name, array.shape, top, [f"{value:g}" for value in array.ravel()])
            top += TALL + FALL
        dots, tables = self._threads(top), self.run.tables if self.run else {}
        later = dots
        for name, size in tables.items():
            top += TALL + FALL
            blocks = math.prod(self.scene.grid)
            rows[name] = self._cells(name, (blocks, size), top, [""] * (blocks * size))
        if tables:
            top += TALL + FALL
            later = self._threads(top)
        for name, want in self.scene.outputs.items():
            top += TALL + FALL
            rows[name] = self._output(name, want, top)
        if self.run:
            self._lines(rows, dots, later, tables)
        told = self._told(math.prod(self.scene.block))
        return _framed(self.body, top + TALL + 17, told), told

    def _cells(self, name, shape, top, texts, marked=()):
        """SVG of a row of elements with its name and their texts; marked ones are framed as wrong."""
        row = _row(len(texts), shape[-1], top)
        self.body.append(_text(0, top + 14, name, anchor="start"))
        for n, (middle, text) in enumerate(zip(row.middles, texts, strict=True)):
            frame = (_colour("orange"), 2.2) if n in marked else ("currentColor", 0.8)
            self.body.append(
                f'<rect x="{middle - row.wide / 2 + 0.7:.4g}" y="{top}" width="{row.wide - 1.4:.4g}" '
                f'height="{TALL}" fill="none" stroke="{frame[0]}" stroke-width="{frame[1]}"/>'
            )
            if text and row.wide >= NARROW:
                self.body.append(_text(middle, top + 14, text, SMALL))
        return row

    def _threads(self, top):
        """SVG of a circle for each thread, with its threadIdx.x if it fits, and a frame for each block."""
        scene, block = self.scene, math.prod(self.scene.block)
        rows = scene.block[0] if scene.block[1] > 1 and math.prod(scene.grid) == 1 else block
        row = _row(scene.threads, min(rows, 32), top)
        radius, middle = min(8, row.wide / 2 - 0.6), top + TALL / 2
        self.body.append(_text(0, top + 14, "threads", anchor="start"))
        for first in range(0, scene.threads, block):
            left, right = row.middles[first] - row.wide / 2, row.middles[first + block - 1] + row.wide / 2
            size = f'width="{right - left + 3:.4g}" height="{TALL + 2}" rx="5"'
            look = 'fill="currentColor" fill-opacity="0.1" stroke="currentColor" stroke-opacity="0.5"'
            self.body.append(f'<rect x="{left - 1.5:.4g}" y="{top - 1}" {size} {look}/>')
        for n, x in enumerate(row.middles):
            if row.wide < NARROW:
                dot = f'r="{radius:.3g}" fill="currentColor"'
            else:
                dot = f'r="{radius:.3g}" fill="none" stroke="currentColor"'
                self.body.append(_text(x, middle + 3.5, n % block % scene.block[0], SMALL))
            self.body.append(f'<circle cx="{x:.4g}" cy="{middle:.4g}" {dot}/>')
        return DrawnRow(row.middles, row.wide, middle - radius, middle + radius)

    def _output(self, name, want, top):
        texts = [""] * want.size
        if self.run:
            got = self.run.values[name].ravel()
            texts = [_short(got[n]) if self.run.writes(name, n) else "" for n in range(want.size)]
        row = self._cells(name, want.shape, top, texts, self.wrong.get(name, []))
        for middle, value in zip(row.middles, want.ravel(), strict=True):
            if row.wide >= NARROW:
                self.body.append(_text(middle, top + TALL + 12, f"{value:g}", SMALL, faint=True))
        return row

    def _lines(self, rows, dots, later, tables):
        """SVG of a line for each touch: into the thread for a read, out of it for a write."""
        for t in self.run.touches:
            row, table, output = rows.get(t.name), t.name in tables, t.name in self.scene.outputs
            if row is None or t.thread >= len(dots.middles):
                continue
            reads = t.kind == "read"
            size = tables[t.name] if table else len(row.middles)
            outside = not 0 <= t.place < size
            place = t.place if outside or not table else t.place + t.block * size
            bad = outside or (output and not reads and t.place in self.wrong[t.name])
            threads = later if output or (table and reads) else dots
            downwards = output or (table and not reads)
            ends = (threads.bottom, row.top) if downwards else (threads.top, row.bottom)
            colour = _colour("orange" if bad else "blue" if reads else "green")
            dash = ' stroke-dasharray="4 2"' if bad else ""
            self.body.append(
                f'<line x1="{threads.middles[t.thread]:.4g}" y1="{ends[0]:.4g}" x2="{row.at(place):.4g}" '
                f'y2="{ends[1]:.4g}" stroke="{colour}" stroke-width="{2 if bad else 1.3}"{dash}/>'
            )

    def _told(self, block):
        if not self.run:
            outputs = self.scene.outputs
            roomy = all(_row(want.size, want.shape[-1], 0).wide >= NARROW for want in outputs.values())
            faint = f"The faint numbers are what {_names(outputs)} shall hold."
            return f"{self.scene.launch}. {faint if roomy else 'The boxes are too narrow for numbers.'}"
        stopped = "The kernel was stopped before its end, at the line that the check below names."
        told = [stopped] if self.run.error else []
        outside = next((t for t in self.run.touches if self._is_outside(t)), None)
        if outside:
            name, shape = outside.name, self._shapes()[outside.name]
            told.append(
                f"{self._who(outside, block)} {_does(outside)} {name}{index_text(outside.place, shape)}, "
                f"which is outside: the last place is {name}{last_index(shape)}."
            )
        for name, want in self.scene.outputs.items():
            wrong = self.wrong[name]
            twice = self._twice(name, want)
            if twice:
                told.append(
                    f"{name}{index_text(twice[0].place, want.shape)} is written by {self._all(twice, block)}."
                )
            if not wrong:
                told.append(f"Every place of {name} is right." if want.size > 1 else f"{name}[0] is right.")
                continue
            first = wrong[0]
            where = f"{name}{index_text(first, want.shape)}"
            wrote = self.run.writes(name, first)
            value = f"{want.ravel()[first]:g}"
            if wrote:
                got = _short(self.run.values[name].ravel()[first]).replace("?", "no number")
                by = "" if twice else f", written by {self._all(wrote, block)}"
                told.append(f"{where} shall be {value} and is {got}{by}.")
            else:
                told.append(f"No thread writes {where}, which shall be {value}.")
            if want.size > 1:
                whole = "Both" if want.size == 2 else f"All {want.size}"
                all_of_them = whole if len(wrong) == want.size else f"{len(wrong)} of the {want.size}"
                told.append(f"{all_of_them} places are wrong.")
        return " ".join(told)

    def _who(self, touch, block):
        """ "Thread 5", "Thread x = 3, y = 0" in two directions; "... of block 2" where there are several."""
        several = f" of block {touch.block}" if math.prod(self.scene.grid) > 1 else ""
        number, wide = touch.thread % block, self.scene.block[0]
        name = f"x = {number % wide}, y = {number // wide}" if wide < block else f"{number}"
        return f"Thread {name}{several}"

    def _all(self, touches, block):
        """In words, the threads that wrote one element, the last of them by name."""
        last = self._who(touches[-1], block).replace("Thread", "thread")
        threads = len({touch.thread for touch in touches})
        return last if threads == 1 else f"{threads} threads, last by {last}"

    def _twice(self, name, want):
        """The touches of the first element that several threads write; [] if there is none."""
        made = ([t for t in self.run.writes(name, n) if t.kind == "write"] for n in range(want.size))
        return next((touches for touches in made if len({t.thread for t in touches}) > 1), [])

    def _shapes(self):
        arrays = self.scene.inputs | self.scene.outputs
        return {name: array.shape for name, array in arrays.items()} | {
            name: (size,) for name, size in self.run.tables.items()
        }

    def _is_outside(self, touch):
        return not 0 <= touch.place < math.prod(self._shapes().get(touch.name, (math.inf,)))


def _names(outputs):
    return " and ".join(outputs)


def _does(touch):
    return {"read": "reads", "write": "writes"}.get(touch.kind, "adds to")


def _colour(name):
    from warplab.plots.palette import PALETTE  # imported here as GPU test machines may lack matplotlib

    return PALETTE[name]


def _short(value):
    return "?" if not np.isfinite(float(value)) else f"{float(value):.4g}"


def _text(x, y, text, size=TEXT, anchor="middle", faint=False):
    opacity = ' fill-opacity="0.65"' if faint else ""
    return (
        f'<text x="{x:.4g}" y="{y:.4g}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="currentColor"{opacity}>{escape(str(text))}</text>'
    )


def _framed(body, height, alt):
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.4g}" role="img" aria-label="{escape(alt)}" '
        f'style="width:100%;max-width:{WIDTH + 80}px;height:auto;display:block" font-family="{escape(FONT)}">'
        f"{''.join(body)}</svg>"
    )
