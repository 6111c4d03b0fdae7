"""NVRTC: CUDA C++ to PTX, without a GPU.

Headers (mma.h, cuda_fp16.h, cooperative_groups.h ...) come from the wheels.
"""

from __future__ import annotations

import functools
import os
import re

from cuda import pathfinder
from cuda.bindings import nvrtc

from warplab.simt.errors import LaunchError
from warplab.simt.toolchain.disk import kept

INTEGERS = "".join(
    f"typedef signed {t} int{n}_t; typedef unsigned {t} uint{n}_t;"
    for n, t in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
)
STANDARD = {  # headers of the host that NVRTC has not: what a kernel uses of them is built in
    name: text
    for names, text in (
        ("stdio.h cstdio stdlib.h cstdlib assert.h cassert math.h cmath", ""),
        ("stdint.h cstdint", INTEGERS),
    )
    for name in names.split()
}


OWN_FILE = re.compile(r'#\s*include\s*"')  # a header that may change while the source does not


class CompileError(LaunchError):
    """NVRTC refused the source; the message has its errors with the source's own line numbers."""

    kind = "compile error"


@functools.cache
def include_folders() -> tuple[str, ...]:
    """Folders of CUDA's headers in the installed wheels."""
    found = (pathfinder.find_nvidia_header_directory(name) for name in ("cudart", "cccl"))
    return tuple(dict.fromkeys(folder for folder in found if folder))


def _checked(result):
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC failed with {status.name}")
    return values[0] if len(values) == 1 else values


def _create(source: str, file: str):
    texts, names = [t.encode() for t in STANDARD.values()], [n.encode() for n in STANDARD]
    return _checked(nvrtc.nvrtcCreateProgram(source.encode(), file.encode(), len(names), texts, names))


def _buffer(size: int) -> bytes:
    """Bytes for NVRTC to write into; never a single byte, which Python shares among all that are equal."""
    return b" " * (size + 1)


@functools.lru_cache(maxsize=128)
def compile_ptx(source: str, name: str, arch: str) -> tuple[str, str]:
    """PTX of ``source`` for ``arch`` ("sm_90") and the entry that ``name`` became there (C++ mangles names).

    Kept on disk, unless the source includes files of its own.
    Raises CompileError with the compiler's messages.
    """
    if OWN_FILE.search(source):
        return _compile(source, name, arch)
    headers = [(folder, os.stat(folder).st_mtime_ns) for folder in include_folders()]
    return kept(
        (nvrtc.nvrtcVersion()[1:], headers, STANDARD, _options(arch), source, name),
        lambda: _compile(source, name, arch),
    )


def _options(arch: str) -> list[str]:
    return [
        f"--gpu-architecture={arch.replace('sm_', 'compute_')}",
        "--std=c++17",
        "-lineinfo",
        *(f"-I{folder}" for folder in include_folders()),
    ]


def _compile(source: str, name: str, arch: str) -> tuple[str, str]:
    file = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}.cu"
    options = _options(arch)
    program = _create(source, file)
    try:
        _checked(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _buffer(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(_errors(log.decode(errors="replace").strip("\0 \n"), name), kernel=name)
        entry = _checked(nvrtc.nvrtcGetLoweredName(program, name.encode())).decode()
        ptx = _buffer(_checked(nvrtc.nvrtcGetPTXSize(program)))
        _checked(nvrtc.nvrtcGetPTX(program, ptx))
        return ptx.decode().rstrip("\0 "), entry
    finally:
        nvrtc.nvrtcDestroyProgram(program)


@functools.lru_cache(maxsize=128)
def compile_to_link(source: str, name: str, arch: str, folders: tuple[str, ...] = ()) -> str:
    """PTX of a CUDA C++ file whose functions other modules will call; ``folders`` hold further headers.

    Raises CompileError with the compiler's messages.
    """
    options = [*(f"-I{folder}" for folder in folders), *_options(arch), "-rdc=true"]
    program = _create(source, name)
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _buffer(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(log.decode(errors="replace").strip("\0 \n"), kernel=name)
        ptx = _buffer(_checked(nvrtc.nvrtcGetPTXSize(program)))
        _checked(nvrtc.nvrtcGetPTX(program, ptx))
        return ptx.decode().rstrip("\0 ")
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _errors(log: str, name: str) -> str:
    """The compiler's errors, one a paragraph; a kernel that is not there gets a sentence of its own."""
    if "name expression" in log or "__nv_name_expr" in log.lower():
        return f"the source has no kernel {name!r}; it must say __global__ void {name}(...)\n{log}"
    return log
