"""Packages that a student's first install leaves out, and the command that installs them."""

from __future__ import annotations

import importlib.util
import re
import shutil
from importlib.metadata import PackageNotFoundError, requires

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# extra -> (its name in messages, the package to install if warplab itself is not installed)
LATER = {
    "torch": ("PyTorch", "torch"),
    "triton": ("Triton", "triton"),
    "cuda": ("NVIDIA's compiler of CUDA C++", "numba-cuda[cu13]"),
}


def needs(*extras: str) -> None:
    """Raise ModuleNotFoundError, with the command to install them, if some of ``extras`` are missing.

    Each is a key of LATER, which are extras of the package warplab.
    """
    if absent := [extra for extra in extras if missing(extra)]:
        raise ModuleNotFoundError(
            f"these cells need {' and '.join(LATER[extra][0] for extra in absent)}, not installed here yet. "
            f"Run this in a cell of its own, or without the % in a terminal, then restart the kernel:\n"
            f"    {command(*absent)}",
            name=absent[0],
        )


def extras_in(code: str) -> list[str]:
    """The extras for which ``code``, such as a notebook's, calls ``needs``."""
    calls = re.findall(r"^\s*needs\((.*?)\)", code, re.MULTILINE)
    return list(dict.fromkeys(re.findall(r'"(\w+)"', " ".join(calls))))


def missing(extra: str) -> bool:
    """Whether the library of an extra cannot be found, however it may have been installed."""
    if extra != "cuda":
        return importlib.util.find_spec(extra) is None
    from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue] - compiled, no stubs
    from cuda.pathfinder import DynamicLibNotFoundError

    try:
        nvrtc.nvrtcVersion()
    except DynamicLibNotFoundError:
        return True
    return False


def command(*extras: str) -> str:
    """The command for a notebook's cell that installs ``extras``, in the versions of warplab's package."""
    try:
        lines = requires("warplab") or []
    except PackageNotFoundError:  # a checkout on the path
        lines = []
    named = {
        extra: line.split(";")[0].strip()
        for line in lines
        for extra in extras
        if re.search(rf"""extra == ['"]{extra}['"]""", line)
    }
    wanted = " ".join(f'"{named.get(extra, LATER[extra][1])}"' for extra in extras)
    cpu = "torch" in extras and not shutil.which("nvidia-smi")
    return f"%pip install {wanted}{f' --extra-index-url {CPU_INDEX}' if cpu else ''}"
