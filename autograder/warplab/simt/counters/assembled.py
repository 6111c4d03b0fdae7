"""Facts and estimates about the machine code of a launch, beside what was counted on PTX.

Exact, from nvdisasm's listing: the number of instructions, the loads, stores and atomics among them with
their widths, and whether ptxas lets one elected lane of a warp do an atomic for all (by VOTEU, UFLO and a
comparison with the lane's own number). The listing does not tell how often each instruction runs.

Estimated, for each source line:
- requests of loads and stores. ptxas joins neighbours (four loads of 4 bytes into one LDS.128), splits others
  (a wmma tile into several) and unrolls loops, but a lane moves as many bytes as before. So the bytes counted
  on PTX, divided by the mean width of the line's instructions in the machine code, are the requests that
  Nsight Compute would count. This is wrong where ptxas drops a load, or moves it to another line.
- a lower bound of their passes through L1 and shared memory. A joined request needs all words of its parts,
  so at least as many passes as its costliest part, which is at least the parts' mean: the passes counted,
  divided by the largest number of requests joined into one. Nor can joining save more passes than the
  requests that disappeared had needed.
- instructions that warps execute: those that the line's PTX issued, times its instructions in machine code,
  divided by its instructions in PTX. For 26 of 30 launches under Nsight Compute (counted.yml) this is right
  within a fifth; for the others it is 0.6 to 1.8 times the real number (unrolled loops, skipped code).
- atomics: PTX's requests, each with one lane where the machine code elects one, else with PTX's lanes. A loop
  of compare-and-swap repeats for some lanes, so there it is a lower bound.

For readers, never for grades.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from warplab.simt.counters.collect import Traffic, access_of
from warplab.simt.toolchain.nvdisasm import MachineInstruction, machine_code_of

Place = tuple[str, int]
_KINDS = {
    "LDG": ("global_load",),
    "LDS": ("shared_load",),
    "LDSM": ("shared_load",),
    "LD": ("global_load", "shared_load"),  # generic: the address decides
    "STG": ("global_store",),
    "STS": ("shared_store",),
    "STSM": ("shared_store",),
    "ST": ("global_store", "shared_store"),
    "LDGSTS": ("global_load", "shared_store"),  # an asynchronous copy does both
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG"), ("atomic",)),
}
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_OPERATIONS = frozenset("ADD MIN MAX INC DEC AND OR XOR EXCH CAS CAST SPIN POPC".split())


def kinds_of(instr: MachineInstruction) -> tuple[str, ...]:
    """The kinds of its accesses ("shared_load" ...) to global and shared memory; () if it has none."""
    return _KINDS.get(instr.opcode, ())


def width_of(instr: MachineInstruction) -> int:
    """The bytes that a lane of a load or store moves."""
    if instr.opcode in ("LDSM", "STSM"):  # one 8 x 8 matrix of 16-bit elements is 4 bytes a lane
        return 4 * int(instr.mods[-1]) if instr.mods[-1] in ("2", "4") else 4
    return next((_BYTES[m] for m in instr.mods if m in _BYTES), 4)


def form_of(instr: MachineInstruction) -> str:
    """``LDS.128``, ``REDG.ADD``: the opcode with its width or operation, without caches and scopes."""
    shown = _OPERATIONS if kinds_of(instr) == ("atomic",) else _BYTES
    if instr.opcode in ("LDSM", "STSM"):
        return ".".join((instr.opcode, *instr.mods[-1:]))
    return ".".join((instr.opcode, *(m for m in instr.mods if m in shown)))


def elects(code: Sequence[MachineInstruction]) -> list[bool]:
    """For each machine instruction, whether it is an atomic that one elected lane executes for its warp:
    its predicate then compares the lane's own number with the result of UFLO or FLO, a vote's highest lane.
    """
    leaders: set[str] = set()  # registers that hold the number of the lane that was elected
    chosen: set[str] = set()  # predicates that are true of that lane alone
    out = []
    for instr in code:
        out.append(kinds_of(instr) == ("atomic",) and instr.guard in chosen)
        written, *read = instr.operands or [""]
        if instr.opcode == "ISETP":
            equal = "EQ" in instr.mods and any(one.partition(".")[0] in leaders for one in read)
            (chosen.add if equal else chosen.discard)(written)
        elif instr.opcode in ("FLO", "UFLO"):
            leaders.add(written)
        else:
            leaders.discard(written)
            chosen.discard(written)
    return out


class AssembledCode:
    """The machine code of a program, by kernel and source line."""

    def __init__(self, program, code: Sequence[MachineInstruction]):
        self.program, self.code = program, code
        body = [i for i in program.function.body if not isinstance(i, str)]
        self.home = next((program.file_of(i.file) for i in body if i.file), "")
        self.elected = elects(code)
        self._atomics: dict[Place, list[int]] = {}
        for i in body:
            if access_of(i) == "atomic":
                self._atomics.setdefault((program.file_of(i.file), i.line), []).append(id(i))

    def forms(self, kind: str) -> dict[str, int]:
        """How many instructions of each form the code has for one kind: {"LDS": 16, "LDS.128": 4}."""
        return dict(sorted(Counter(form_of(i) for i in self.code if kind in kinds_of(i)).items()))

    @property
    def branches(self) -> bool:
        """Whether the code has a branch that some lanes may take and others not."""
        return any(i.opcode == "BRA" and i.guard for i in self.code)

    def issued(self, issues: dict[Place, int], static: dict[Place, int]) -> float:
        """Estimated instructions that warps execute, from ``issues``, the instructions of PTX that each line
        issued, and ``static``, how many its PTX has.
        """
        lines = Counter(i.place(self.home) for i in self.code)
        return sum(n * issues.get(place, 0) / static.get(place, 1) for place, n in lines.items())

    def estimate(self, traffic: dict[tuple[int, str], Traffic]) -> dict[tuple[int, int], dict[str, float]]:
        """(file number, line) -> estimated requests of each kind ("shared_load" ...), and lower bounds of
        passes ("shared_load_passes" ...).

        A line whose elected and other atomics cannot be told apart has no "atomic" and "atomic_lanes".
        """
        out: dict[tuple[int, int], dict[str, float]] = {}
        accesses: dict[tuple[tuple[int, int], str], list[Traffic]] = {}
        unclear = set()
        for (site, space), t in traffic.items():
            instr = self.program.sites[site]
            place = instr.file, instr.line
            if space not in ("global", "shared"):
                continue
            if (kind := access_of(instr)) != "atomic":
                accesses.setdefault((place, f"{space}_{kind}"), []).append(t)
                continue
            elected = self._elected(instr)
            if elected is None:
                unclear.add(place)
                continue
            line = out.setdefault(place, {})
            line["atomic"] = line.get("atomic", 0) + t.requests
            line["atomic_lanes"] = line.get("atomic_lanes", 0) + (t.requests if elected else t.lanes)
        for place in unclear:
            out.pop(place, None)
        for (place, kind), parts in accesses.items():
            here = self.program.file_of(place[0]), place[1]
            widths = self._widths(kind, here) or self._widths(kind)
            if not widths:
                continue
            asked, counted = sum(t.requests for t in parts), sum(t.passes for t in parts)
            made = sum(t.moved for t in parts) / (sum(widths) / len(widths))
            together = max(1, max(widths) / min(t.moved / t.requests for t in parts))
            gone, most = max(0, asked - made), max(t.passes / t.requests for t in parts)
            least = max(asked - gone, counted / together, counted - gone * most)
            out.setdefault(place, {}).update({kind: made, f"{kind}_passes": least})
        return out

    def _widths(self, kind: str, here: Place | None = None) -> list[int]:
        """The widths in bytes of the accesses of one kind, on the line ``here`` or on all lines."""
        return [width_of(i) for i in self.code if kind in kinds_of(i) and here in (None, i.place(self.home))]

    def _elected(self, instr) -> bool | None:
        """Whether the machine code has one elected lane do this atomic of PTX; None where that is unclear."""
        here = self.program.file_of(instr.file), instr.line
        mine = self._atomics.get(here, [])
        made = [
            one
            for i, one in zip(self.code, self.elected, strict=True)
            if kinds_of(i) == ("atomic",) and i.place(self.home) == here
        ]
        if len(made) == len(mine) and id(instr) in mine:
            return made[mine.index(id(instr))]
        return made[0] if len(set(made)) == 1 else None


def assembled(program) -> AssembledCode | None:
    """The machine code of a translated program; None without nvdisasm."""
    code = machine_code_of(program.ptx, program.entry)
    return None if code is None else AssembledCode(program, code)


def spins(forms: Iterable[str]) -> bool:
    """Whether one of the forms is a compare-and-swap of a loop that retries."""
    return any("CAST" in form for form in forms)
