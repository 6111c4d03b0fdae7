"""nvdisasm, the disassembler: which loads and stores the assembler made of each source line.

From a wheel, where it is installed.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from warplab.simt.toolchain.ptxas import assemble, find

PLACE = re.compile(r'//## File "([^"]*)", line (\d+)')
SECTION = re.compile(r"\s*\.section\s+\.text\.([\w$]+)")
ACCESS = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(LDGSTS|LDG|LDSM|LDS|LD|STG|STS|STSM|ST)((?:\.\w+)*)\s"
)
SPACE = {"LDG": "global_load", "LDS": "shared_load", "LDSM": "shared_load", "LD": "generic_load"}
SPACE |= {"STG": "global_store", "STS": "shared_store", "STSM": "shared_store", "ST": "generic_store"}
NARROW = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


@dataclass
class Accesses:
    """The instructions of one kind on one source line: how many, and the bytes that a lane moves."""

    count: int = 0
    bytes: int = 0


@functools.lru_cache(maxsize=256)
def accesses(ptx: str, entry: str, home: str) -> dict[tuple[str, int, str], Accesses] | None:
    """By file, line and kind ("shared_load" ...) the accesses in the assembled code of ``entry``.

    None without nvdisasm.
    ``home`` is the kernel's file: code that was inlined into it counts at the line there that called it.
    """
    if find("nvdisasm") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(assemble(ptx, entry).cubin)
        run = subprocess.run([find("nvdisasm"), "-gi", "-c", str(file)], capture_output=True, text=True)
    if run.returncode:
        return None
    others = set(re.findall(r"\.entry\s+([\w$]+)", ptx)) - {entry}
    return read(run.stdout, home, others)


def read(listing: str, home: str, others: set[str]) -> dict[tuple[str, int, str], Accesses]:
    """The accesses in nvdisasm's ``listing``, without those of the kernels named in ``others``."""
    out: dict[tuple[str, int, str], Accesses] = {}
    chain: list[tuple[str, int]] = []
    fresh, skip = True, False
    for line in listing.splitlines():
        section = SECTION.match(line)
        if section:
            skip = section.group(1) in others
            chain = []
            continue
        place = PLACE.search(line)
        if place:
            chain = [*([] if fresh else chain), (place.group(1), int(place.group(2)))]
            fresh = False
            continue
        fresh = True
        found = ACCESS.search(line)
        if found and chain and not skip:
            where = next((p for p in chain if p[0] == home), chain[-1])
            for name, width in _kinds(found.group(1), found.group(2).split(".")[1:]):
                entry = out.setdefault((*where, name), Accesses())
                entry.count, entry.bytes = entry.count + 1, entry.bytes + width
    return out


def _kinds(opcode: str, mods: list[str]) -> list[tuple[str, int]]:
    """The kind of access and a lane's bytes: of LDGSTS, an asynchronous copy, both of its sides."""
    if opcode in ("LDSM", "STSM"):  # one 8 x 8 matrix of 16-bit elements is 4 bytes a lane
        return [(SPACE[opcode], 4 * int(mods[-1]) if mods[-1] in ("2", "4") else 4)]
    width = next((NARROW[m] for m in mods if m in NARROW), 4)
    names = ("global_load", "shared_store") if opcode == "LDGSTS" else (SPACE[opcode],)
    return [(name, width) for name in names]
