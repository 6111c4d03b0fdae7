"""NVRTC: compiles CUDA C++ to PTX, without a GPU.

Headers (mma.h, cuda_fp16.h, cooperative_groups.h ...) come from the wheels. Host code is removed first
(``host_code.py``), and replacements for the host's headers are included (``standard_headers.py``).
"""

from __future__ import annotations

import codecs
import functools
import os
import re
from dataclasses import astuple
from pathlib import Path
from typing import Any

from cuda import pathfinder
from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue] - compiled, no stubs

from warplab.hardware import packages
from warplab.simt.errors import LaunchError
from warplab.simt.toolchain.compiler_notes import NAME_FILE, OVERLOADED, most_helpful, name_error, notes_on
from warplab.simt.toolchain.disk import cached
from warplab.simt.toolchain.host_code import DeviceSource, without_host_code
from warplab.simt.toolchain.standard_headers import (
    EMPTY,
    FOR_HOST,
    OF_C,
    PRELUDE,
    PRELUDE_NAME,
    STAND_INS,
    library_for,
)

LIBRARY_NAME = "warplab_library.cuh"
_OURS = frozenset((PRELUDE_NAME, LIBRARY_NAME))
# NVIDIA's own switch: cooperative_groups.h without libcu++, which takes a second to compile
_LIMITED = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"
# libcu++'s value for nvcc; for NVRTC it is 16, and each step doubles the compile time
_UNROLLED = "-D_CCCL_META_UNROLL_LIMIT=10"
_NEEDS_LIBCUXX = re.compile(r"\bcuda\s*::|<\s*(?:cuda|cub)/")
_MESSAGE = re.compile(
    r"^(?:(?P<file>[^\n(]+)\((?P<line>\d+)\)|(?P<end>At end of source)): "
    r"(?P<kind>(?:catastrophic )?error|warning|remark)\b",
    re.M,
)
_TAIL = re.compile(
    r"^(Remark:|Note #|\d+ (catastrophic )?errors? detected|Compilation terminated|Error limit)", re.M
)


class CompileError(LaunchError):
    """NVRTC refused the source; the message has its first error, with the author's own file and line."""

    kind = "compile error"


class OverloadedKernel(CompileError):
    """Several kernels have the name, and differ in the types of their parameters."""


# the architectures of NVRTC, which numba-cuda asks for before each kernel
ARCHITECTURES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
_find, _ask_nvrtc = pathfinder.load_nvidia_dynamic_lib, nvrtc.nvrtcGetSupportedArchs


# A student's first install has no NVRTC. numba-cuda compiles without it, but looks it up and asks for its
# architectures first; these two functions answer instead.
def _found(name: str) -> pathfinder.LoadedDL:
    """The location of a library. For a missing NVRTC it is NVVM's, as numba-cuda does not use the result."""
    try:
        return _find(name)
    except pathfinder.DynamicLibNotFoundError:
        return _find("nvvm" if name == "nvrtc" else name)


@functools.cache
def _supported_architectures() -> tuple[Any, list[int]]:
    try:
        return _ask_nvrtc()
    except pathfinder.DynamicLibNotFoundError:
        return nvrtc.nvrtcResult.NVRTC_SUCCESS, list(ARCHITECTURES)


pathfinder.load_nvidia_dynamic_lib, nvrtc.nvrtcGetSupportedArchs = _found, _supported_architectures


def _check_installed(kernel: str) -> None:
    if packages.missing("cuda"):
        raise CompileError(
            "CUDA C++ needs NVIDIA's compiler, which is not installed here",
            kernel=kernel,
            hint=f"run {packages.command('cuda')} in a cell of its own and restart the kernel",
        )


@functools.cache
def include_folders() -> tuple[str, ...]:
    """The folders of CUDA's headers: those of the installed wheels, then an installed toolkit's."""
    found = [pathfinder.find_nvidia_header_directory(name) for name in ("cudart", "cccl")]
    found += [f"{os.environ.get(home)}/include" for home in ("CUDA_HOME", "CUDA_PATH")]
    return tuple(dict.fromkeys(folder for folder in found if folder and os.path.isdir(folder)))


def _checked(result) -> Any:
    """The results of a call of NVRTC without its status. Raises CompileError if it failed."""
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC failed with {status.name}")
    return values[0] if len(values) == 1 else values


def _buffer(size: int) -> bytes:
    """Bytes for NVRTC to write into; at least two, as Python shares bytes objects of length 1."""
    return b" " * (size + 1)


def file_name(name: str) -> str:
    """The file name in messages for a source that is not from a file: ``<kernel>.cu``."""
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}.cu"


def text_of(path: Path) -> str:
    """The text of a C++ file: UTF-8, or UTF-16 if it begins with a byte order mark."""
    with path.open("rb") as file:
        wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return path.read_text(encoding="utf-16" if wide else "utf-8", errors="replace")


def prepare(
    source: str, name: str, path: str = "", folders: tuple[str, ...] = (), alone: bool = False
) -> DeviceSource:
    """``source`` for NVRTC, without host code and with the author's own headers. ``name``: the kernel.

    ``path``: the file of the source, in whose folder its headers are searched for; default: the current
    folder. ``folders``: further folders with headers. ``alone``: leave out the source's other kernels.
    """

    def find(header: str, by: str, quoted: bool) -> tuple[str, str] | None:
        beside = os.path.normpath(os.path.join(os.getcwd(), os.path.dirname(by), header))
        if not quoted or not os.path.isfile(beside):
            return None
        return beside, text_of(Path(beside))

    def known(header: str) -> bool:
        installed = any(os.path.isfile(os.path.join(f, header)) for f in (*folders, *include_folders()))
        return header in EMPTY or header in STAND_INS or installed and not FOR_HOST.match(header)

    return without_host_code(source, path or file_name(name), name, find, known, alone)


@functools.lru_cache(maxsize=128)
def compile_ptx(prepared: DeviceSource, name: str, arch: str, path: str = "") -> tuple[str, str]:
    """(PTX for ``arch``, such as "sm_90", the mangled name of the kernel ``name`` in it).

    Cached on disk, keyed by everything that the compiler gets, as other versions of the course share the
    cache. Raises CompileError with the compiler's first message, or if no compiler is installed.
    """
    _check_installed(name)
    installed = [(folder, os.stat(folder).st_mtime_ns) for folder in include_folders()]
    given = (_LIMITED, _options(arch), astuple(prepared), _headers_for(prepared), name, path)
    ptx, entry = cached(
        (nvrtc.nvrtcVersion()[1:], installed, *given),
        lambda: _compile(prepared, path or file_name(name), _options(arch), name),
    )
    found = _OF_ONE_CHIP.search(ptx)
    number = int(re.sub(r"\D", "", arch))
    if found and (number < 90 or found[1] == "wgmma" and number != 90):
        raise CompileError(
            f"{found[0]} is not an instruction of {arch}, for which the kernel is compiled",
            kernel=name,
            hint="WARPLAB_ARCH=sm_90, for the engine; or a GPU that has it",
        )
    if found and arch[-1].isdigit():
        return compile_ptx(prepared, name, f"{arch}a", path)
    return ptx, entry


# instructions of a single compute capability, which need an architecture such as "sm_90a"
_OF_ONE_CHIP = re.compile(r"\b(wgmma|setmaxnreg|tcgen05)\.\w+(?=[.:])")  # does not match a file wgmma.cu


@functools.lru_cache(maxsize=128)
def compile_to_link(source: str, name: str, arch: str, folders: tuple[str, ...] = ()) -> str:
    """PTX of a CUDA C++ file whose functions other modules call; ``folders`` are searched for headers.

    Raises CompileError with the compiler's first message, or if no compiler is installed.
    """
    _check_installed(name)
    options = [*(f"-I{folder}" for folder in folders), *_options(arch), "-rdc=true"]
    return _compile(prepare(source, name, folders=folders), name, options)[0]


def _options(arch: str) -> list[str]:
    return [
        f"--gpu-architecture={arch.replace('sm_', 'compute_')}",
        "--std=c++17",
        "-lineinfo",
        _UNROLLED,
        *(f"-I{folder}" for folder in include_folders()),
        f"--pre-include={PRELUDE_NAME}",
        f"--pre-include={LIBRARY_NAME}",
    ]


def _compile(prepared: DeviceSource, file: str, options: list[str], kernel: str = "") -> tuple[str, str]:
    """(PTX, mangled name of ``kernel``). First tries without libcu++ if the source does not use it itself."""
    text = "\n".join((prepared.text, *dict(prepared.headers).values()))
    if "cooperative_groups" in text and not _NEEDS_LIBCUXX.search(text):
        try:
            return _compile_with(prepared, file, [*options, _LIMITED], kernel)
        except CompileError:
            pass  # an error in the source, or libcu++ is needed: the second attempt tells
    return _compile_with(prepared, file, options, kernel)


def _headers_for(prepared: DeviceSource) -> dict[str, str]:
    """{name: text} of the headers that are not in a folder."""
    own = dict(prepared.headers)
    library = library_for("\n".join((prepared.text, *own.values())))
    headers = {name: "" for name in (*EMPTY, *prepared.missing)}
    return headers | STAND_INS | own | {PRELUDE_NAME: PRELUDE, LIBRARY_NAME: library}


def _compile_with(prepared: DeviceSource, file: str, options: list[str], kernel: str) -> tuple[str, str]:
    headers = _headers_for(prepared)
    texts, names = [t.encode() for t in headers.values()], [n.encode() for n in headers]
    created = nvrtc.nvrtcCreateProgram(prepared.text.encode(), file.encode(), len(names), texts, names)
    program = _checked(created)
    try:
        if kernel:
            _checked(nvrtc.nvrtcAddNameExpression(program, kernel.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            said = _buffer(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
            _checked(nvrtc.nvrtcGetProgramLog(program, said))
            log = said.decode(errors="replace").strip("\0 \n")
            refused = OverloadedKernel if OVERLOADED in log else CompileError
            raise refused(_message(log, prepared, file, kernel), kernel=kernel or file)
        entry = _checked(nvrtc.nvrtcGetLoweredName(program, kernel.encode())).decode() if kernel else ""
        ptx = _buffer(_checked(nvrtc.nvrtcGetPTXSize(program)))
        _checked(nvrtc.nvrtcGetPTX(program, ptx))
        return ptx.decode().rstrip("\0 "), entry
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _message(log: str, prepared: DeviceSource, file: str, kernel: str) -> str:
    """A message with the compiler's most helpful error in the author's own files, and notes on it."""
    own = {file, *dict(prepared.headers), None}  # None: an error at the end of the source
    marks = list(_MESSAGE.finditer(log))
    ends = [m.start() for m in marks[1:]] + [len(log)]
    errors = [(m, log[m.start() : end]) for m, end in zip(marks, ends) if "error" in m["kind"]]
    unknown_kernel = _no_such_kernel(prepared, kernel) if kernel else ""
    if unknown_kernel and ("__nv_name_expr" in log.lower() or "name expression" in log or not errors):
        return unknown_kernel
    if not errors:
        return log
    if all(mark["file"] == NAME_FILE for mark, _ in errors):
        if said := name_error(log, kernel, dict(prepared.kernels)):
            return said
    mark, text = most_helpful([e for e in errors if e[0]["file"] in own] or errors)
    text = text[: found.start()] if (found := _TAIL.search(text)) else text
    place = mark["file"]
    lines = text.rstrip().split("\n")
    last = next((i for i, line in enumerate(lines) if line.strip() == "^"), len(lines))
    lines = [line for line in lines[: last + 1] if not any(name in line for name in _OURS)]
    if mark["end"]:
        lines[0] = lines[0].replace(mark["end"], f"{os.path.basename(file)}, at its end", 1)
        lines[1:] = [re.sub(r"note #[\w-]+:", "note:", line) for line in lines[1:]]
    elif place not in own:  # in a header of CUDA: show the author's line from which it came
        came = [m for m in re.finditer(r'at line (\d+) of "?([^"\n]+)', text) if m[2] in own]
        lines = [lines[0] if lines else text.split("\n")[0]]
        lines += [f"  from {os.path.basename(m[2])}({m[1]})" for m in came[:1]]
    notes = _notes(lines, prepared)
    lines[0] = lines[0].replace(place or "", os.path.basename(place or ""), 1)
    if len(errors) > 1:
        lines.append(f"({len(errors) - 1} more error{'s' if len(errors) > 2 else ''})")
    return "\n".join([*lines, *notes])


def _no_such_kernel(prepared: DeviceSource, kernel: str) -> str:
    """A message for a kernel that does not exist, or a template without arguments; "" for others."""
    kernels = dict(prepared.kernels)
    base = kernel.partition("<")[0].strip()
    if kernels.get(base) and "<" not in kernel:
        return f"{base} is a template: name one instance of it, such as {base}<float>"
    if base in kernels:
        return ""
    there = f"it has {', '.join(kernels)}" if kernels else f"it must say __global__ void {base}(...)"
    return f"the source has no kernel {kernel!r}; {there}"


def _notes(lines: list[str], prepared: DeviceSource) -> list[str]:
    """Notes on a name that the compiler does not know, which is host code or whose header is missing."""
    error = lines[0]
    host = dict(prepared.host)
    unknown = [name.rpartition("::")[2] for name in re.findall(r'"([\w:]+)"', error)]
    notes = [
        f"  {name} is host code ({host[name]}): a kernel can use only __device__, __constant__ or constexpr"
        for name in unknown
        if name in host
    ]
    missing = [name for name in prepared.missing if "." in name and not OF_C.match(name)]
    if not notes and missing and re.search("undefined|does not apply|is not a t", error):
        where = "; headers of your own are searched for beside the file that includes them"
        notes.append(f"  not found, and so treated as empty: {', '.join(missing)}{where}")
    return notes + notes_on(lines)
