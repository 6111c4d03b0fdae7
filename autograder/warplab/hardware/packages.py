"""Packages that a student's first install leaves out, and the command that brings them."""

from __future__ import annotations

import importlib.util
import re
import shutil
from importlib.metadata import PackageNotFoundError, requires

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# what each is, and its package where warplab is on the path and not installed
LATER = {
    "torch": ("PyTorch", "torch"),
    "triton": ("Triton", "triton"),
    "cuda": ("NVIDIA's compiler of CUDA C++", "numba-cuda[cu13]"),
}


def needs(*extras: str) -> None:
    """Raise ModuleNotFoundError, with the command that installs them, where some of ``extras`` are missing.

    Each is a key of LATER, and so an extra of the package warplab.
    """
    if absent := [extra for extra in extras if missing(extra)]:
        raise ModuleNotFoundError(
            f"these cells need {' and '.join(LATER[extra][0] for extra in absent)}, not installed here yet. "
            f"Run this in a cell of its own, or without the % in a terminal, then restart the kernel:\n"
            f"    {command(*absent)}",
            name=absent[0],
        )


def asked_for(code: str) -> list[str]:
    """The extras for which some code calls ``needs``, such as a notebook's."""
    calls = re.findall(r"^\s*needs\((.*?)\)", code, re.MULTILINE)
    return list(dict.fromkeys(re.findall(r'"(\w+)"', " ".join(calls))))


def missing(extra: str) -> bool:
    """Whether what the extra brings is not to be had here, from whatever source."""
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
    """For a notebook's cell. The versions are those that warplab's package names."""
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
