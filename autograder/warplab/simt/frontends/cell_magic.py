"""``%%cuda``: a notebook cell of CUDA C++, whose kernels become variables of the notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from typing import Any

from warplab.simt.frontends.cuda_cpp import CudaKernel
from warplab.simt.toolchain.nvrtc import CompileError, OverloadedKernel, prepare

MAGIC = "%%cuda"
_KERNEL = re.compile(r"__global__\b[^;{}]*?\b(\w+)\s*\(")  # works in sources that do not compile, too
_BOUND = re.compile(r"([A-Za-z_]\w*)=")


def parted(cell: str) -> tuple[str, str] | None:
    """(arguments of ``%%cuda``, the C++ below it, padded to keep line numbers) of a cell with this magic;
    None for other cells.
    """
    text = cell.lstrip()
    first, _, body = text.partition("\n")
    words = first.split(None, 1)
    if words[:1] != [MAGIC]:
        return None
    blank = cell[: len(cell) - len(text)].count("\n") + 1
    return words[1].strip() if len(words) > 1 else "", "\n" * blank + body


def bind_kernels(arguments: str, source: str, namespace: MutableMapping[str, Any]) -> None:
    """Compile ``source`` and bind each of its kernels by name in ``namespace``.

    ``arguments``: names for template instances, as in ``scale=scale<float, 16> half=scale<__half, 16>``.
    Raises CompileError with the compiler's first message; then none of these names is bound, so that no
    earlier kernel of that name runs instead.
    """
    prepared = prepare(source, "")
    set_aside = [name for name, _ in prepared.host]  # includes kernels whose __global__ was forgotten
    earlier = [name for name in set_aside if isinstance(namespace.get(name), CudaKernel)]
    for name in {*_KERNEL.findall(source), *_BOUND.findall(arguments), *earlier}:
        namespace.pop(name, None)
    instances = dict(_instances(arguments))
    plain = {name.rpartition("::")[2]: name for name, template in prepared.kernels if not template}
    kernels: dict[str, CudaKernel] = {}
    refused: CompileError | None = None
    for name, kernel in {**plain, **instances}.items():
        try:
            kernels[name] = CudaKernel(source, kernel)
        except OverloadedKernel as error:  # as for a template, the arguments must say which one is meant
            if name in instances:
                raise
            refused = error
    if not kernels:
        templates = [name.rpartition("::")[2] for name, template in prepared.kernels if template]
        functions = [name for name in set_aside if re.search(rf"\bvoid\s+{re.escape(name)}\s*\(", source)]
        hint = f"__global__ void {(*functions, 'name')[0]}(...)"
        if templates:
            hint = f"{MAGIC} {templates[0]}={templates[0]}<float>, with the arguments of the template"
        raise refused or CompileError("the cell has no kernel to bind", hint=hint)
    namespace.update(kernels)


def _instances(arguments: str) -> Iterator[tuple[str, str]]:
    """(name, kernel's name in C++) of each ``name=kernel<...>``."""
    found = list(_BOUND.finditer(arguments))
    if arguments and (not found or found[0].start()):
        raise CompileError(f"{MAGIC} takes name=kernel<...>, and got {arguments!r}")
    for one, following in zip(found, [*found[1:], None]):
        yield one[1], arguments[one.end() : following.start() if following else None].strip()


def register(shell) -> None:
    """Add the cell magic to an IPython shell."""
    from IPython.core.error import UsageError  # imported late: warplab does not require IPython

    def cuda(line: str, cell: str) -> None:
        try:
            bind_kernels(line, "\n" + cell, shell.user_ns)
        except CompileError as error:
            raise UsageError(str(error)) from None  # IPython shows it without a traceback

    shell.register_magic_function(cuda, "cell", MAGIC.strip("%"))
