"""ptxas, the assembler: registers, shared memory and spills of a kernel, and its machine code."""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from warplab.hardware.target import LaunchLimits

OLDEST = "sm_75"  # the oldest architecture of CUDA 13's ptxas


@dataclass(frozen=True)
class Assembled:
    """The report of ``ptxas -v`` on one kernel: registers a thread, bytes of shared memory a block, bytes of
    spills and stack a thread; and the machine code.
    """

    registers: int
    shared_bytes: int
    spill_bytes: int
    stack_bytes: int
    cubin: bytes = field(default=b"", repr=False)


class ToolchainError(RuntimeError):
    """ptxas is missing or rejected the PTX."""


@functools.cache
def find(tool: str = "ptxas") -> str | None:
    """The path of one of CUDA's tools, in a wheel or on the PATH; None if there is none."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for found in sorted(Path(folder).glob(f"cu*/bin/{tool}{'.exe' if sys.platform == 'win32' else ''}")):
            return str(found)
    return shutil.which(tool)


def assemble(ptx: str, entry: str, arch: str = "") -> Assembled:
    """Assemble PTX and return the report on ``entry``.

    The target is the newest of the PTX's own architecture, ``arch`` (the CUDA driver also assembles older PTX
    for newer GPUs) and the oldest one that ptxas supports. Raises ToolchainError with ptxas's first message
    if it refuses the PTX, or if it is not installed.
    """
    target = re.search(r"\.target\s+(\w+)", ptx)
    if target is None:
        raise ToolchainError("ptxas needs a .target directive, and the PTX has none")
    return _assemble(ptx, entry, max(target[1], arch, OLDEST, key=number_of))


def number_of(arch: str) -> int:
    """The number in an architecture's name: 80 for "sm_80", 90 for "sm_90a", 0 for ""."""
    return int(re.sub(r"\D", "", arch) or 0)


@functools.lru_cache(maxsize=256)
def _assemble(ptx: str, entry: str, target: str) -> Assembled:
    if find() is None:
        raise ToolchainError("ptxas is not installed; pip install 'cuda-toolkit[nvcc]'")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx, encoding="utf-8")
        command = [find(), "-v", f"-arch={target}", str(source), "-o", str(Path(folder, "kernel.cubin"))]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode and "nresolved extern" in run.stderr:
            # functions that are linked later: the report does not include them
            run = subprocess.run([*command, "-c"], capture_output=True, text=True)
        made = Path(folder, "kernel.cubin")
        cubin = made.read_bytes() if made.exists() else b""
    if run.returncode:
        said = run.stderr.replace(str(source), source.name).strip().splitlines()
        raise ToolchainError(f"ptxas refused the kernel: {said[0] if said else 'no message'}")
    text = run.stderr + run.stdout
    at = text.find(f"'{entry}'")
    text = text[at:] if at >= 0 else text

    def number(pattern: str) -> int:
        m = re.search(pattern, text)
        return int(m.group(1)) if m else 0

    return Assembled(
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes smem"),
        number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        number(r"(\d+) bytes stack frame"),
        cubin,
    )


def blocks_per_sm(registers: int, shared: int, threads: int, limit: LaunchLimits) -> dict[str, int]:
    """Blocks of ``threads`` threads that fit an SM, by resource: warps, blocks, registers, shared memory. The
    smallest number is the number of resident blocks.

    As in the CUDA occupancy calculator, registers are allocated in units to warps, from a quarter of the SM's
    file for each scheduler, and shared memory in units to blocks, with CUDA's own 1 KiB added.
    """
    warps = -(-threads // 32)
    out = {"warps": limit.max_warps_per_sm // warps, "blocks": limit.max_blocks_per_sm}
    if registers:
        per_warp = -(-registers * 32 // limit.register_unit) * limit.register_unit
        out["registers"] = (limit.registers_per_sm // 4 // per_warp) * 4 // warps
    used = -(-(shared + limit.reserved_shared) // limit.shared_unit) * limit.shared_unit
    if used:
        out["shared memory"] = limit.shared_per_sm // used
    return out
