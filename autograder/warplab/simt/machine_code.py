"""``machine_code(kernel)``: a kernel's source, its PTX and its machine code, line by line side by side.

NVIDIA's compilers need no GPU for this, and record the source line of each instruction. The assembler moves
and merges instructions: one that serves several lines is shown at one of them.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import PurePath

from warplab.hardware.device import engine_target
from warplab.hardware.target import Target
from warplab.rendering import render
from warplab.simt.engine.indices import SHARED_SYMBOL
from warplab.simt.frontends import mlir_hook, numba_hook, triton_hook
from warplab.simt.frontends.cuda_cpp import ConfiguredKernel, CudaKernel
from warplab.simt.ptx.parser import parse
from warplab.simt.toolchain.nvdisasm import required

_WIDEST = 64  # characters of PTX in the text's left column; longer ones push the right one aside


@dataclass
class CodeLine:
    """One line of source, and the instructions of PTX and of machine code (SASS) that came from it.

    ``line`` is 0 and ``source`` empty for instructions that came from no line.
    """

    file: str
    line: int
    source: str
    ptx: list[str] = field(default_factory=list)
    sass: list[str] = field(default_factory=list)

    @property
    def number(self) -> str:
        """The line's number as a reader sees it, with the file's name if it is not the kernel's file."""
        return f"{self.file}:{self.line}" if self.file else str(self.line or "")


@dataclass
class MachineCode:
    """A kernel for the architecture ``arch`` in its ``lines``; in a notebook it shows itself as a table."""

    kernel: str
    arch: str
    lines: list[CodeLine]

    @property
    def counts(self) -> tuple[int, int]:
        """How many instructions of PTX and of machine code there are, labels not counted."""
        ptx, sass = (
            sum(not text.endswith(":") for one in self.lines for text in getattr(one, column))
            for column in ("ptx", "sass")
        )
        return ptx, sass

    @property
    def counted(self) -> str:
        """The counts in words."""
        ptx, sass = self.counts
        return f"{ptx} instructions of PTX, {sass} of machine code (SASS) for {self.arch}"

    @property
    def title(self) -> str:
        return f"{self.kernel}: {self.counted}"

    def __str__(self) -> str:
        widest = max((len(text) for one in self.lines for text in one.ptx), default=0)
        width = min(max(widest, 3), _WIDEST)
        out = [self.title, f"{'':6}{'PTX':<{width}} | SASS"]
        for one in self.lines:
            out.append(f"{one.number:>4}  {one.source.strip()}".rstrip())
            pairs = zip_longest(one.ptx, one.sass, fillvalue="")
            out += [f"{'':6}{ptx:<{width}} | {sass}".rstrip() for ptx, sass in pairs]
        return "\n".join(out)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render("warplab.simt", "machine_code.html.j2", code_of=self)


def machine_code(kernel, *args, arch: str | None = None, **constants) -> MachineCode:
    """The source, the PTX and the machine code of ``kernel``, side by side. Nothing runs.

    ``kernel``: the result of ``@cuda.jit``, ``cuda_kernel`` or ``@triton.jit``, with or without a
    configuration ``[grid, block]``. ``args``: the arguments of a numba kernel, whose types decide its code;
    without them, the types that it was last compiled for are taken. A Triton kernel needs its arguments and
    its ``constants``, such as BLOCK=1024 or num_warps=8. ``arch``: for example "sm_80"; the default is
    WARPLAB_ARCH or sm_90, for Triton WARPLAB_TRITON_ARCH or sm_80.

    Raises TypeError for another object, or for a numba kernel without ``args`` that was never compiled;
    ValueError for a Triton kernel and another architecture than Triton's; ToolchainError without nvdisasm.
    """
    if triton_hook.is_triton_kernel(kernel):
        if arch not in (None, triton_hook.target().arch):
            raise ValueError(triton_hook.not_compiled_for(arch))
        ptx, name = triton_hook.ptx_of(kernel, args, constants)
        return _side_by_side(name, ptx, name, triton_hook.target())
    if constants:
        raise TypeError(f"{next(iter(constants))}=...: only Triton's kernels take arguments by name")
    target = Target.of(arch) if arch else engine_target()
    if numba_hook.is_configured(kernel) or mlir_hook.is_configured(kernel):
        kernel = kernel.dispatcher
    if isinstance(kernel, ConfiguredKernel):
        kernel = kernel.kernel
    if isinstance(kernel, CudaKernel):
        return _side_by_side(kernel.name, *kernel.compiled(target.arch), target, kernel.source.splitlines())
    if not (numba_hook.is_dispatcher(kernel) or mlir_hook.is_dispatcher(kernel)):
        raise TypeError(
            "machine_code() takes what @cuda.jit, warplab.cuda_kernel or @triton.jit made, "
            f"and got {type(kernel).__name__}"
        )
    name = kernel.py_func.__name__  # pyright: ignore[reportAttributeAccessIssue] - a dispatcher
    return _side_by_side(name, *_ptx_of(kernel, args, target), target)


def _ptx_of(dispatcher, args, target: Target) -> tuple[str, str]:
    """PTX and entry of a ``@cuda.jit`` function for the types of ``args``; without ``args``, of the last
    compilation.
    """
    if not args and not dispatcher.overloads:
        name = dispatcher.py_func.__name__
        raise TypeError(
            f"{name} has no machine code yet, which depends on the types of its arguments: "
            f"launch it once, or write machine_code({name}, ...) with its arguments"
        )
    if mlir_hook.is_dispatcher(dispatcher):
        modules, entry = mlir_hook.ptx_of(dispatcher, args, target)
        return modules[0], entry
    last = list(dispatcher.overloads.values())
    compiled = numba_hook.compiled_for(dispatcher, args) if args else last[-1]
    return numba_hook.ptx_of(compiled, target)[0], compiled.entry_name


def _side_by_side(
    name: str, ptx: str, entry: str, target: Target, text: list[str] | None = None
) -> MachineCode:
    """The table of a compiled kernel. ``text``: the lines of its source where that is not in a file.

    Parameters and numba's shared arrays are shown by their short names in the PTX.
    """
    module = parse(ptx)
    device = [function for function in module.functions.values() if not function.is_entry]
    body = [item for function in (module.functions[entry], *device) for item in function.body]
    files = module.files
    home = next((files[i.file] for i in body if not isinstance(i, str) and i.file in files), "")
    lines: dict[tuple[str, int], CodeLine] = {}

    def at(file: str, line: int) -> CodeLine:
        if (file, line) not in lines:
            own = text if file == home else None
            known = own is not None and 0 < line <= len(own)
            source = own[line - 1] if own and known else linecache.getline(file, line).rstrip("\n")
            lines[file, line] = CodeLine("" if file == home else PurePath(file).name, line, source)
        return lines[file, line]

    labels: list[str] = []
    for item in body:
        if isinstance(item, str):
            labels.append(f"{item}:")
            continue
        short = SHARED_SYMBOL.sub(lambda found: found[1] or found[0], item.text)
        at(files.get(item.file, ""), item.line).ptx += [*labels, short.replace(f"{entry}_param", "param")]
        labels = []
    for instr in required(ptx, entry):
        at(*instr.place(home)).sass += [*(f"{label}:" for label in instr.labels), instr.text]
    own = sorted(place for place in lines if place[0] == home)
    others = [place for place in lines if place[0] != home]
    return MachineCode(name, target.arch, [lines[place] for place in (*own, *others)])
