"""What ``@cuda.jit(link=[...])`` and declared device functions bring along, compiled to PTX without a GPU."""

from __future__ import annotations

import os

from numba import cuda
from numba.cuda.core import config
from numba.cuda.cudadrv.linkable_code import LinkableCode

from ..errors import InvalidLaunch
from ..toolchain.nvrtc import compile_to_link


def linked_ptx(library, capability) -> tuple[str, ...]:
    """PTX of every file that a code library links. Raises InvalidLaunch for binary files, which have no PTX to run."""
    return tuple(_ptx(item, tuple(capability)) for item in sorted(library._linking_files, key=str))


def _ptx(item, capability) -> str:
    if isinstance(item, LinkableCode):
        kind, name, data = item.kind, item.name, item.data
    else:
        kind, name = os.path.splitext(item)[1].lstrip("."), os.path.basename(item)
        try:
            with open(item, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise InvalidLaunch(f"the file to link is not there: {item}") from None
    text = data.decode() if isinstance(data, bytes) and kind in ("cu", "ptx") else data
    if kind == "cu":
        return _compiled(text, name, capability)
    if kind == "ptx":
        return text.rstrip("\0")
    raise InvalidLaunch(f"cannot link {name} (.{kind}): it holds machine code", hint="link CUDA C++ (.cu) or PTX, or run on a CUDA GPU")


def _compiled(source: str, name: str, capability) -> str:
    major, minor, *variant = capability
    numba = os.path.dirname(cuda.__file__)
    folders = [os.path.join(numba, "include", "13"), os.path.join(numba, "memory_management"), *_extra_folders()]
    return compile_to_link(source, name, f"sm_{major}{minor}{''.join(variant)}", tuple(folders))


def _extra_folders() -> list[str]:
    """numba's own setting for where a linked file's headers are."""
    return [folder for folder in (config.CUDA_NVRTC_EXTRA_SEARCH_PATHS or "").split(":") if folder]
