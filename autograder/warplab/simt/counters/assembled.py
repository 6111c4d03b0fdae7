"""What the assembled code would request, estimated: PTX's bytes in the assembler's pieces.

ptxas joins neighbouring loads (four of 4 bytes to one LDS.128), splits others (a wmma tile to several), and
unrolls loops. Of a source line it keeps the bytes that each lane asks for; so the bytes counted on PTX,
divided by the mean width of the line's instructions in the machine code, estimate how many requests Nsight
Compute would see. For the reader, never for grades.
"""

from __future__ import annotations

from warplab.simt.counters.collect import Traffic
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.ptx.effects import effects_of
from warplab.simt.toolchain.nvdisasm import Accesses, accesses


def estimate(program, traffic: dict[tuple[int, str], Traffic]) -> dict[tuple[int, int], dict[str, float]]:
    """By file number and line: kind of access ("shared_load" ...) to requests; empty without nvdisasm."""
    places = {site: (program.sites[site].file, program.sites[site].line) for site, _ in traffic}
    home = next(
        (program.file_of(i.file) for i in program.function.body if not isinstance(i, str) and i.file), ""
    )
    found = accesses(program.ptx, program.entry, home)
    if found is None:
        return {}
    moved: dict[tuple[tuple[int, int], str], float] = {}
    for (site, space), t in traffic.items():
        instr = program.sites[site]
        if space in ("global", "shared") and effects_of(instr, INSTRUCTIONS).memory != "atomic":
            key = places[site], f"{space}_{'store' if instr.opcode == 'st' else 'load'}"
            moved[key] = moved.get(key, 0) + t.moved
    out: dict[tuple[int, int], dict[str, float]] = {}
    for (place, kind), amount in moved.items():
        here = (program.file_of(place[0]), place[1])
        width = _width(found, kind, lambda file, line, here=here: (file, line) == here) or _width(
            found, kind, lambda file, line: True
        )
        if width:
            out.setdefault(place, {})[kind] = amount / width
    return out


def _width(found: dict[tuple[str, int, str], Accesses], kind: str, chosen) -> float:
    """Mean bytes a lane of the accesses of one kind on the chosen lines; 0 if there are none.

    Generic ones are among them.
    """
    kinds = (kind, f"generic_{kind.split('_')[1]}")
    mine = [a for (file, line, name), a in found.items() if name in kinds and chosen(file, line)]
    return sum(a.bytes for a in mine) / sum(a.count for a in mine) if mine else 0.0
