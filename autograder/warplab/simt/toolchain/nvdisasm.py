"""nvdisasm, the disassembler: a kernel's machine code (SASS), instruction by instruction."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from warplab.simt.toolchain.ptxas import ToolchainError, assemble, find

_PLACE = re.compile(r'//## File "([^"]*)", line (\d+)')
_SECTION = re.compile(r"\s*\.section\s+\.text\.([\w$]+)")
_LABEL = re.compile(r"(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+((?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)((?:\.\w+)*)[^;]*)")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction: ``@P0 LDG.E.128 R4, desc[UR4][R2.64]`` with ``opcode`` LDG, ``mods`` E and 128.

    ``places``: the (file, line) that it came from and, for inlined code, those of the calls, innermost first.
    ``labels``: the labels before it.
    """

    text: str
    opcode: str
    mods: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    labels: tuple[str, ...] = ()

    @property
    def guard(self) -> str:
        """The instruction's predicate: ``P0`` for ``@P0`` and ``@!P0``, "" if there is none."""
        return self.text.split()[0].lstrip("@!") if self.text.startswith("@") else ""

    @property
    def operands(self) -> list[str]:
        """The operands, the results first."""
        bare = self.text.split(maxsplit=1)[1] if self.guard else self.text
        return [one.strip() for one in bare.partition(" ")[2].split(",")]

    def place(self, home: str) -> tuple[str, int]:
        """The innermost (file, line) in the kernel's own file ``home``, so code inlined from a library counts
        at its call; the outermost place if there is none; ("", 0) for code without a line.
        """
        if not self.places:
            return "", 0
        return next((place for place in self.places if place[0] == home), self.places[-1])


@functools.lru_cache(maxsize=256)
def machine_code_of(ptx: str, entry: str) -> tuple[MachineInstruction, ...] | None:
    """The machine code of the kernel ``entry`` for the architecture of its PTX; None without nvdisasm, or if
    that cannot read the code. Raises ToolchainError if ptxas refuses the PTX.
    """
    tool = find("nvdisasm")
    if tool is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(assemble(ptx, entry).cubin)
        run = subprocess.run([tool, "-gi", "-c", str(file)], capture_output=True, text=True)
    if run.returncode:
        return None
    return read(run.stdout, set(_ENTRY.findall(ptx)) - {entry})


def read(listing: str, others: set[str]) -> tuple[MachineInstruction, ...]:
    """The instructions in nvdisasm's ``listing``, without those of the kernels in ``others``, and without the
    padding after a function's end (a branch to itself and NOPs).
    """
    out: list[MachineInstruction] = []
    chain: list[tuple[str, int]] = []
    labels: list[str] = []
    fresh, skip = True, False
    for line in listing.splitlines():
        if section := _SECTION.match(line):
            skip = section[1] in others
            chain, labels = [], []
        elif place := _PLACE.search(line):
            chain = [*([] if fresh else chain), (place[1], int(place[2]))]
            fresh = False
        elif label := _LABEL.match(line):
            labels.append(label[1])
        elif (found := _INSTRUCTION.search(line)) and not skip:
            fresh = True
            text, opcode, mods = " ".join(found[1].split()), found[2], tuple(found[3].split(".")[1:])
            padding = opcode == "NOP" or opcode == "BRA" and any(f"({one})" in text for one in labels)
            if not padding:
                out.append(MachineInstruction(text, opcode, mods, tuple(chain), tuple(labels)))
            labels = []
    return tuple(out)


def required(ptx: str, entry: str) -> tuple[MachineInstruction, ...]:
    """``machine_code_of``, but raises ToolchainError if nvdisasm is missing or cannot read the code."""
    code = machine_code_of(ptx, entry)
    if code is None:
        what = "could not read the machine code" if find("nvdisasm") else "is not installed"
        raise ToolchainError(f"nvdisasm {what}; pip install nvidia-cuda-nvdisasm")
    return code
