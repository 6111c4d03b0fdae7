"""Files that ``@cuda.jit(link=[...])`` and declared device functions link, as PTX, compiled without a GPU."""

from __future__ import annotations

import os

from numba import cuda

from warplab.simt.errors import InvalidLaunch
from warplab.simt.toolchain.nvrtc import compile_to_link


def linked_ptx(item, capability: tuple, folders: tuple[str, ...] = ()) -> str:
    """The PTX of a file or ``LinkableCode`` that a kernel links. ``folders`` are searched for headers.

    Raises InvalidLaunch for a file that does not exist, and for machine code, which the engine does not run.
    """
    if isinstance(item, cuda.LinkableCode):
        kind, name, data = item.kind, item.name, item.data
    else:
        kind, name = os.path.splitext(item)[1].lstrip("."), os.path.basename(item)
        try:
            with open(item, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise InvalidLaunch(f"the file to link does not exist: {item}") from None
    if kind not in ("cu", "ptx"):
        raise InvalidLaunch(
            f"cannot link {name} (.{kind}): it holds machine code",
            hint="link CUDA C++ (.cu) or PTX, or run on a CUDA GPU",
        )
    text = data if isinstance(data, str) else bytes(data).decode()
    return _compiled(text, name, capability, folders) if kind == "cu" else text.rstrip("\0")


def _compiled(source: str, name: str, capability: tuple, extra: tuple[str, ...]) -> str:
    major, minor, *variant = capability
    numba = os.path.dirname(cuda.__file__)
    folders = [
        os.path.join(numba, "include", "13"),
        os.path.join(numba, "memory_management"),
        *extra,
    ]
    return compile_to_link(source, name, f"sm_{major}{minor}{''.join(variant)}", tuple(folders))
