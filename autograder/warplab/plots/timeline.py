"""``timeline(run)``: draws what host and device did, in rows like Nsight Systems, with the gaps named.

"Utilisation", as nvidia-smi reports it, is the share of time in which any kernel runs. The last row shows
this, with the share of SMs that the kernels used as its height, where that is known.
"""

from __future__ import annotations

import json
import tempfile
import textwrap
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from warplab.crossing.virtual_device import VirtualDevice
from warplab.plots.figure import LETTER, Figure, show
from warplab.plots.responsive import COLUMN, responsive
from warplab.plots.theme import INK, PALETTE, legend, new
from warplab.timing.bench import seconds

COLOURS = {"call": "grey", "wait": "gold", "copy in": "blue", "kernel": "green", "copy out": "purple"}
KINDS = {"in": "copy in", "out": "copy out", "compute": "kernel", "HtoD": "copy in", "DtoH": "copy out"}
KINDS |= {"kernel": "kernel", "gpu_memset": "kernel", "cpu_op": "call", "cuda_runtime": "call"}
KINDS |= {"call": "call", "wait": "wait"}  # {name in a virtual device or trace: kind}


class TimelineBar(NamedTuple):
    """An activity from ``start`` to ``end``, in seconds. ``kind``: a key of COLOURS.

    ``row``: the number of a stream, or the name of a host thread. ``used``: a kernel's blocks per SM, 1 or
    more if it uses all SMs; None if not known.
    """

    row: int | str
    kind: str
    name: str
    start: float
    end: float
    used: float | None = None


def timeline(run, uses: float | None = None, caption: str | None = None) -> Figure:
    """Draw a run: a ``VirtualDevice``, a ``torch.profiler.profile`` that has ended, or the path of its trace.

    ``uses``: blocks per SM of each kernel, 1 or more if they use all SMs; a trace of CUDA kernels has its own
    values. Times are virtual, or the profiler's. Of a virtual device the first MAX_SPANS operations and calls
    are drawn. Raises ValueError if nothing took time, TypeError for other objects.
    """
    if isinstance(run, VirtualDevice):
        done = [*run.host_spans, *run.spans]
        found = [TimelineBar(row, KINDS[did], name, at, at + took, uses) for did, row, at, took, name in done]
    elif hasattr(run, "export_chrome_trace"):
        with tempfile.TemporaryDirectory() as folder:
            run.export_chrome_trace(path := str(Path(folder, "trace.json")))
            return timeline(path, uses, caption)
    elif isinstance(run, str | Path):
        found = of_trace(json.loads(Path(run).read_text(encoding="utf-8"))["traceEvents"], uses)
    else:
        takes = "a VirtualDevice (itself, not what connect() gives), a torch.profiler.profile or a path"
        raise TypeError(f"timeline() takes {takes}, and got {type(run).__name__}")
    if not found:
        raise ValueError("nothing in this run took time: there is no timeline to draw")
    return _drawn(found, caption)


def of_trace(events: list[dict], uses: float | None = None) -> list[TimelineBar]:
    """The bars of a trace of torch's profiler: outermost operators and calls of threads, work in streams."""
    some = [e for e in events if e.get("cat") in (*KINDS, "gpu_memcpy") and e.get("dur")]
    first, threads, found, until = min((e["ts"] for e in some), default=0), {}, [], Counter()
    for e in sorted(some, key=lambda e: (e["ts"], -e["dur"])):
        about, name = e.get("args", {}), e["name"].removeprefix("aten::")
        kind = KINDS.get(e["cat"]) or KINDS.get(name.split()[1], "kernel")  # copies within the device too
        thread = threads.setdefault(e["tid"], f"host {len(threads) + 1}") if kind == "call" else ""
        row = thread or about.get("stream")
        if not thread or e["ts"] >= until[row]:  # else it is inside another operator
            until[row] = e["ts"] + e["dur"]
            start, end = 1e-6 * (e["ts"] - first), 1e-6 * (until[row] - first)
            found.append(TimelineBar(row, kind, name, start, end, about.get("blocks per SM", uses)))
    return found


def gaps(found: list[TimelineBar], kind: str) -> list[TimelineBar]:
    """The gaps without activity of ``kind``, named after what ran then: copies first, then host calls."""
    ran, last = sorted((s.start, s.end) for s in found if s.kind == kind), max(s.end for s in found)
    out, at = [], 0.0
    for start, end in [*ran, (last, last)]:
        if start > at:
            during = [s for s in found if s.kind != kind and s.start < start and s.end > at]
            copies = dict.fromkeys(s.kind for s in during if s.kind.startswith("copy"))
            calls = dict.fromkeys(f"host: {s.name}" for s in during if s.kind in ("call", "wait"))
            why = " and ".join(copies or calls) or "nothing recorded"
            out.append(TimelineBar("busy", "wait", why, at, start))
        at = max(at, end)
    return out


def told(found: list[TimelineBar], kind: str) -> str:
    """In words: how long activities of ``kind`` run, how many SMs they use, and what fills the gaps."""
    whole, waits = max(s.end for s in found), defaultdict(float)
    for gap in gaps(found, kind):
        waits[gap.name] += round((gap.end - gap.start) / whole, 9)
    share, some = 1 - sum(waits.values()), [s for s in found if s.kind == "kernel" and s.used is not None]
    words = f"{'A kernel' if kind == 'kernel' else 'An operator'} runs {share:.0%} of {seconds(whole)}"
    if some:
        used = sum((s.end - s.start) * min(1, s.used or 0) for s in some) / sum(s.end - s.start for s in some)
        words += f" and uses {used:.0%} of the SMs: {share * used:.0%} of what there is"
    most = sorted(waits.items(), key=lambda w: -w[1])[:4]
    named = ", ".join(f"{why} {part:.0%}" for why, part in most if round(part, 2))
    return f"{words}. Gaps: {named}." if named else f"{words}."


@responsive
def _drawn(found: list[TimelineBar], caption: str | None) -> Figure:
    kind = "kernel" if any(s.kind == "kernel" for s in found) else "call"
    rows = sorted({s.row for s in found}, key=lambda row: (isinstance(row, int), row))
    names = [f"stream {row}" if isinstance(row, int) else row for row in rows]
    at, whole = {row: -n for n, row in enumerate([*rows, "busy"])}, max(s.end for s in found)
    figure, ax = new(COLUMN, 0.42 * len(at) + 1.5)
    room, kinds = (figure.get_figwidth() - 1.1) / LETTER, set()
    for s in found:
        style = {"left": s.start, "width": s.end - s.start, "color": PALETTE[COLOURS[s.kind]]}
        style["label"], light = "" if s.kind in kinds else s.kind, 0.4 if s.kind == "wait" else 1
        ax.barh(at[s.row], height=0.8, alpha=light, **style)
        kinds.add(s.kind)
        if s.kind == kind:
            ax.barh(at["busy"], height=0.8, alpha=0.3, **style | {"label": ""})
            ax.barh(at["busy"] - 0.4, height=0.8 * min(1, s.used or 0), align="edge", **style | {"label": ""})
    for s in [*found, *gaps(found, kind)]:
        letters, colour = int(room * (s.end - s.start) / whole) - 1, INK if s.kind == "wait" else "#ffffff"
        short = textwrap.shorten(s.name, max(1, letters), placeholder="…")
        place = {"ha": "center", "va": "center", "fontsize": 9.5, "color": colour}
        ax.text((s.start + s.end) / 2, at[s.row], "" if short == "…" else short, **place)
    ax.set_yticks([*at.values()], [*names, "busy"])
    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(lambda value, _: seconds(value))
    ax.set(xlim=(0, whole), ylim=(at["busy"] - 0.6, 0.6))
    ax.set_title(textwrap.fill(told(found, kind), int(room)), loc="left", fontsize=11)
    legend(figure)
    return show(figure, f"A timeline with the rows {', '.join(names)}. {told(found, kind)}", caption)
