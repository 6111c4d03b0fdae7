"""``%%cuda``: a notebook cell of CUDA C++, whose kernels become names of the notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from typing import Any

from warplab.simt.frontends.cuda_cpp import CudaKernel
from warplab.simt.toolchain.nvrtc import CompileError, prepare

MAGIC = "%%cuda"
_KERNEL = re.compile(r"__global__\b[^;{}]*?\b(\w+)\s*\(")  # also in a source that is not C++ yet
_BOUND = re.compile(r"([A-Za-z_]\w*)=")


def parted(cell: str) -> tuple[str, str] | None:
    """(what stands behind ``%%cuda``, the C++ below it) of such a cell, with the cell's own line numbers.

    None of any other cell.
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

    arguments: names for instances of templates: ``scale=scale<float, 16> half=scale<__half, 16>``.
    After a mistake none of these names is bound, so that no earlier kernel of that name runs in its place.
    Raises CompileError with the compiler's first message.
    """
    instances = dict(_instances(arguments))
    for name in {*_KERNEL.findall(source), *instances}:
        namespace.pop(name, None)
    kernels: dict[str, CudaKernel] = {}
    plain = _plain_kernels(source)
    for name, kernel in {**{k.rpartition("::")[2]: k for k in plain}, **instances}.items():
        kernels[name] = CudaKernel(source, kernel)
    if not kernels:
        raise CompileError(
            "the cell has no kernel to bind",
            hint=f"__global__ void name(...), and for a template: {MAGIC} name=name<float>",
        )
    namespace.update(kernels)


def _plain_kernels(source: str) -> list[str]:
    """The kernels of a source that are no templates, with their namespaces."""
    return [name for name, template in prepare(source, "").kernels if not template]


def _instances(arguments: str) -> Iterator[tuple[str, str]]:
    """(name, kernel as C++ names it) of each ``name=kernel<...>``."""
    found = list(_BOUND.finditer(arguments))
    if arguments and (not found or found[0].start()):
        raise CompileError(f"{MAGIC} takes name=kernel<...>, and got {arguments!r}")
    for one, following in zip(found, [*found[1:], None]):
        yield one[1], arguments[one.end() : following.start() if following else None].strip()


def register(shell) -> None:
    """Give an IPython shell the cell magic."""
    from IPython.core.error import UsageError  # a student's install has it, warplab alone need not

    def cuda(line: str, cell: str) -> None:
        try:
            bind_kernels(line, "\n" + cell, shell.user_ns)
        except CompileError as error:
            raise UsageError(str(error)) from None  # IPython shows it without a traceback

    shell.register_magic_function(cuda, "cell", MAGIC.strip("%"))
