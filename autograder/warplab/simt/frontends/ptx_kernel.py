"""Kernels from PTX text, by any compiler or written by hand.

``k = ptx_kernel(text, "name")``, then ``k[grid, block](...)`` as with CUDA C++.
"""

from __future__ import annotations

import re

from warplab.simt.engine.program import Program
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends.cuda_cpp import ConfiguredKernel
from warplab.simt.frontends.launch import translated
from warplab.simt.frontends.space import SPACE
from warplab.simt.ptx.parser import PTXSyntaxError, parse
from warplab.simt.toolchain.nvrtc import CompileError
from warplab.simt.toolchain.ptxas import ToolchainError, assemble, number_of

_TARGET = re.compile(r"\.target\s+(sm_\d+[af]?)")


class PtxKernel:
    """An entry of a PTX module; ``kernel[grid, block, stream, shared_bytes, cluster](*args)`` launches it, as
    for a CudaKernel.

    Arguments are passed in C's convention: an array as its pointer, a number in the type of its ``.param``;
    if that is untyped (``.b32``), it must be a NumPy number of the same size.
    """

    non_portable_cluster_size_allowed = False

    def __init__(self, text: str, name: str):
        self.text, self.name = text, name
        try:
            assemble(text, name)  # so that the assembler's errors are raised here, not at the first launch
            entries = [function.name for function in parse(text).functions.values() if function.is_entry]
        except (ToolchainError, PTXSyntaxError) as error:
            raise CompileError(str(error), kernel=name) from None
        if name not in entries:
            raise CompileError(
                f"the PTX has no entry {name!r}; it has {', '.join(entries) or 'none'}",
                kernel=name,
                hint="the name after .entry, which C++ compilers mangle",
            )

    def __getitem__(self, configuration) -> ConfiguredKernel:
        return ConfiguredKernel(self, configuration)

    def compiled(self, arch: str) -> tuple[str, str]:
        """(PTX, entry) for an architecture: the text as it is, which newer architectures run too.

        Raises InvalidLaunch if ``arch`` is older than the text's, or differs from one such as sm_90a, whose
        code no other architecture runs.
        """
        target = _TARGET.findall(self.text)[0]  # always there, as the assembler accepted the text
        asked, given = number_of(target), number_of(arch)
        if asked > given or (target[-1] in "af" and asked != given):
            raise InvalidLaunch(
                f"the PTX is for {target}, which {arch} does not run",
                kernel=self.name,
                hint=f"WARPLAB_ARCH=sm_{asked}, or PTX for an older architecture",
            )
        return self.text, self.name

    def program(self, arch: str) -> Program:
        """The translated program for an architecture."""
        ptx, entry = self.compiled(arch)
        return translated((ptx,), entry, self.name, SPACE)


def ptx_kernel(text: str, name: str) -> PtxKernel:
    """The entry ``name`` of PTX ``text``, from any compiler or written by hand.

    Raises CompileError for text that is not PTX, that the assembler refuses, or that has no such entry.
    Instructions that the engine does not execute are refused at the launch, by name.
    """
    return PtxKernel(text, name)
