"""Rules that find performance problems in a launch's counts; kernel_rules.yml has the sentences of findings.

Names are those of Nsight Compute's rules where it has one. The conditions of Block Size, Small Grid and Tail
Effect are those of NVIDIA's rule LaunchConfiguration; without a measured occupancy, a tail is reported if
waves fill less than 80 % of the rounds that they take. All other thresholds are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import NamedTuple

from warplab.hardware import specs
from warplab.hardware.target import Target
from warplab.simt.counters.collect import access_of
from warplab.simt.counters.counts import PASSES, LineCounts
from warplab.simt.profile import Profile
from warplab.simt.ptx.ptx_types import TYPES
from warplab.simt.toolchain.ptxas import blocks_per_sm
from warplab.timing.bounds import L1, Bounds

WORDS = specs.load(Path(__file__).with_name("kernel_rules.yml"))
LIMITS = ("warps", "blocks", "registers", "shared memory")


class KernelFinding(NamedTuple):
    """A finding of ``rule``: a ``sentence`` with its numbers, and what to ``change``.

    ``line``: in the kernel's own file; 0 for a finding about the launch, or in another file, which the
    sentence then names.
    """

    rule: str
    line: int
    sentence: str
    change: str


class Residency(NamedTuple):
    """How a launch of ``blocks`` with ``threads`` occupies a device's ``sms``.

    ``fits``: {resource: blocks that fit on an SM}; ``limit``: the scarcest resource. ``warps``: resident on
    an SM then; ``occupancy``: their share of the maximum, 0 to 1, theoretical. ``wave``: blocks that run at
    once on the device; ``waves``: how many waves there are (``launch__waves_per_multiprocessor``).
    """

    blocks: int
    threads: int
    sms: int
    fits: dict[str, int]
    limit: str
    warps: int
    occupancy: float
    wave: int
    waves: float

    @staticmethod
    def of(p: Profile, spec: specs.Spec) -> Residency:
        """The Residency of a profiled launch. Raises SpecError if the registry lacks SMs or architecture."""
        limits, sms = Target.of(spec.arch).limits, int(spec["sms"].value)
        blocks, threads = math.prod(p.grid), math.prod(p.block)
        every = dict.fromkeys(LIMITS, limits.max_blocks_per_sm)
        fits = every | blocks_per_sm(p.registers, p.shared_bytes, threads, limits)
        limit = min(fits, key=lambda name: fits[name])
        warps, wave = fits[limit] * -(-threads // 32), max(1, fits[limit]) * sms
        share = warps / limits.max_warps_per_sm
        return Residency(blocks, threads, sms, fits, limit, warps, share, wave, blocks / wave)


@dataclass(frozen=True)
class KernelRules:
    """One launch on one device, with the ``findings`` of all rules.

    ``bounds``: None if nothing that was counted has one. ``home``: the kernel's own file.
    """

    profile: Profile
    device: specs.Spec
    bounds: Bounds | None
    residency: Residency

    @cached_property
    def findings(self) -> list[KernelFinding]:
        return [*self._launch(), *self._memory(), *self._repeated(), *self._instructions()]

    @property
    def home(self) -> str:
        program = self.profile.program
        return program.file_of(next((i.file for b in program.blocks for i in b.instrs if i.file), 0))

    def _found(self, rule: str, at=None, **numbers) -> KernelFinding:
        """A KernelFinding of `rule`. at: the LineCounts of a line, or None. numbers: for its sentence."""
        words, line = WORDS[rule], 0
        if at:
            line = at.line if at.file == self.home else 0
            numbers["place"] = f"Line {at.line}" + ("" if line else f" of {PurePath(at.file).name}")
        told = {"p": self.profile, "where": self.residency, "c": at, "spec": self.device, **numbers}
        says, change = (words[key].format(**told) for key in ("says", "change"))
        return KernelFinding(rule.partition(",")[0], line, says, change)

    def _array(self, c: LineCounts, kind: str) -> str:
        """ " of x", x the argument whose access on a line takes most sectors in the first warp; or ""."""
        what = (c.line, {"load": "read", "store": "write"}.get(kind, kind), "global")
        mine = [s for s in self.profile.samples if (s.line, s.kind, s.space) == what]
        label = max(mine, key=lambda s: len(s.sectors)).label if mine else ""
        name = label.removeprefix("argument '").partition("'")[0]
        return f" of {name}" if name.isidentifier() else ""  # arguments of C++ kernels are numbered

    def _launch(self) -> Iterator[KernelFinding]:
        w = self.residency
        (rest, whole), most = math.modf(w.waves), -(-w.blocks // w.sms)
        if w.threads % 32:
            yield self._found("Block Size", idle=-w.threads % 32)
        if w.blocks < w.sms:
            yield self._found("Small Grid", s="s" * (w.blocks > 1), share=1 - w.blocks / w.sms)
        elif 1 <= whole <= 4 and rest and w.waves < 0.8 * (whole + 1):
            left = w.blocks - int(whole) * w.wave
            yield self._found("Tail Effect", whole=whole, left=left, share=1 / (whole + 1))
        elif whole < 1 and w.blocks < 0.8 * most * w.sms:
            mean = w.blocks / w.sms
            yield self._found("Tail Effect, within one wave", most=most, mean=mean, more=most / mean)
        if w.blocks >= w.sms and w.waves < 1 and w.waves * w.occupancy < 1 / 8:
            yield self._found("Few Warps", mean=w.waves * w.warps, share=w.waves * w.occupancy)
        if w.occupancy < 0.5 and w.blocks > w.sms:
            yield self._found(f"Theoretical Occupancy, {w.limit}", fits=w.fits[w.limit])
        if self.profile.spill_bytes:
            yield self._found("Local Memory, spilled")

    def _memory(self) -> Iterator[KernelFinding]:
        p, reached, apart = self.profile, 0, {}
        ran = {id(i): done for n, done in p.execution.items() for i in p.program.blocks[n].instrs}
        for (number, space), t in p.traffic.items():
            instr = p.program.sites[number]
            if (done := ran.get(id(instr))) is None:
                continue
            reached = max(reached, done.threads)
            fewest = math.ceil(t.moved / t.requests * done.threads / done.warps / 32)  # lanes side by side
            key = p.program.file_of(instr.file), instr.line, access_of(instr)
            if space == "global" and key[2] != "atomic" and t.sectors >= 2 * fewest * t.requests:
                apart[key] = max(apart.get(key, (0, 0)), (t.sectors / t.requests, fewest))
        launched = self.residency.blocks * self.residency.threads
        if p.traffic and reached < 0.75 * launched:
            yield self._found("Idle Threads", launched=launched, reached=reached)
        for c in sorted(p.lines, key=lambda c: -sum(map(c.passes, PASSES))):  # the costliest first
            for kind in ("load", "store"):
                each, fewest = apart.get((c.file, c.line, kind), (0, 0))
                part, shared = getattr(c, f"global_{kind}"), getattr(c, f"shared_{kind}")
                if each and part.requests:
                    told = {"kind": kind, "each": each, "fewest": fewest, "part": part}
                    told["share"] = c.passes(f"global_{kind}") / p.l1_wavefronts
                    told["of"] = self._array(c, kind)
                    mean = part.sectors_per_request
                    told["mean"] = "" if each < 1.1 * mean else f", {mean:.3g} a request on average"
                    yield self._found("Uncoalesced Global Accesses", c, **told)
                ideal, excess = shared.wavefronts - shared.bank_conflicts, c.conflicts(f"shared_{kind}")
                if excess > ideal / 2:
                    asked = c.assembled.get(f"shared_{kind}", shared.requests)
                    told = {"each": (ideal + excess) / asked, "fewest": ideal / asked, "excess": excess}
                    told["share"] = excess / p.l1_wavefronts
                    yield self._found(f"Shared {kind.title()} Bank Conflicts", c, **told)
            if c.atomics.lanes_per_address >= 4:
                where = ", shared" if c.shared_atomic.requests > c.global_atomic.requests else ""
                yield self._found(f"Atomic Contention{where}", c, of=self._array(c, "atomic"))
            if c.local_requests:
                yield self._found("Local Memory", c)

    def _repeated(self) -> Iterator[KernelFinding]:
        """The line with most requests to L1, if it loads the same values repeatedly and L1 is the bound."""
        p, b = self.profile, self.bounds
        if b is None or b.binds.level != L1:
            return
        read, half = sum(one.read for one in p.footprints.values()), p.l1_wavefronts / 2
        if p.l1_passes["global_load"] > half and p.global_load.bytes >= 4 * read:
            asked = p.global_load.bytes
            told = {"asked": size(asked), "distinct": size(read), "times": asked / read}
            line = max(p.lines, key=lambda c: c.global_load.sectors)
            yield self._found("Repeated Loads", line, of=self._array(line, "load"), **told)
        elif p.l1_passes["shared_load"] > half:
            line = max(p.lines, key=lambda c: c.shared_load.requests)
            if line.flops >= 16 * line.shared_load.requests:
                fewer = max(one.seconds for one in b.bounds if one.unit == "FLOP") / b.at_least
                told = {"share": p.l1_passes["shared_load"] / 2 / half, "fewer": fewer}
                told["flops"] = line.flops / line.shared_load.requests
                yield self._found("Repeated Loads, shared", line, **told)

    def _instructions(self) -> Iterator[KernelFinding]:
        p, wide = self.profile, set()
        ran = [i for n in p.execution for i in p.program.blocks[n].instrs if i.opcode == "cvt"]
        for instr in ran if p.unit_flops.get("fp64") else ():
            types = [mod for mod in instr.mods if mod in TYPES]
            if types[0] == "f64" != types[-1]:
                wide.add((p.program.file_of(instr.file), instr.line))
        lines = [c for c in p.lines if (c.file, c.line) in wide]
        if lines:
            others = ", ".join(str(c.line) for c in lines[1:])
            told = {"flops": p.unit_flops["fp64"], "also": f", and so do lines {others}" if others else ""}
            yield self._found("FP64/32 Utilization", lines[0], **told)
        worst = max(p.lines, key=lambda c: c.divergent_branches, default=None)
        if worst and worst.divergent_branches > 0.1 * worst.branches and p.warp_execution_efficiency < 0.9:
            told = {"share": 1 - worst.branch_efficiency, "active": 32 * p.warp_execution_efficiency}
            yield self._found("Thread Divergence", worst, **told)


def size(count: float) -> str:
    """Bytes in binary units: "64 MiB", "96 B"."""
    power = min(3, int(math.log2(max(1, count)) // 10))
    form = ",.0f" if count >= 999.5 * 1024**power else ".3g"
    return f"{count / 1024**power:{form}} {('B', 'KiB', 'MiB', 'GiB')[power]}"
