"""warplab: CUDA kernels from a notebook, on a GPU if there is one and on the SIMT engine if not.

``import warplab`` before the first kernel is launched. It says once which device it found.
"""

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from warplab.evidence.measure import measure
from warplab.hardware import prices, specs
from warplab.hardware.device import Device, DeviceError, device
from warplab.models import vram
from warplab.simt.errors import (
    BarrierDivergence,
    BarrierMisuse,
    BarrierWarning,
    InvalidLaunch,
    KernelAssertion,
    LaunchError,
    MisalignedAccess,
    NoProgress,
    OutOfBounds,
    SharedRace,
    StackOverflow,
    UnfinishedCopy,
    UninitialisedRead,
    UnsupportedInstruction,
    UseAfterFree,
    WarpgroupMisuse,
    WarpWide,
)
from warplab.simt.frontends import cell_magic as _cell_magic
from warplab.simt.frontends import mlir_hook as _mlir_hook
from warplab.simt.frontends import numba_hook as _numba_hook
from warplab.simt.frontends import triton_hook as _triton_hook
from warplab.simt.frontends.cuda_cpp import cuda_kernel
from warplab.simt.frontends.ptx_kernel import ptx_kernel
from warplab.simt.frontends.tensor_map import tensor_map
from warplab.simt.machine_code import MachineCode, machine_code
from warplab.simt.profile import Profile, profile
from warplab.simt.sanitizer.constants import UnsetConstant
from warplab.simt.sanitizer.races import GlobalConflict
from warplab.simt.toolchain.nvrtc import CompileError
from warplab.simt.trace import Trace, step
from warplab.simt.watched import ProfileError
from warplab.timing.bench import NotTimed, Timing, bench
from warplab.timing.bounds import Bounds, bounds
from warplab.timing.tuning import by_bound as _by_bound

if _TYPE_CHECKING:
    from warplab.plots.kernel_report import report
    from warplab.plots.timeline import timeline

__all__ = [
    "BarrierDivergence",
    "BarrierMisuse",
    "BarrierWarning",
    "Bounds",
    "CompileError",
    "Device",
    "DeviceError",
    "GlobalConflict",
    "InvalidLaunch",
    "KernelAssertion",
    "LaunchError",
    "MachineCode",
    "MisalignedAccess",
    "NoProgress",
    "NotTimed",
    "OutOfBounds",
    "Profile",
    "ProfileError",
    "SharedRace",
    "Timing",
    "StackOverflow",
    "Trace",
    "UnfinishedCopy",
    "UninitialisedRead",
    "UnsetConstant",
    "UnsupportedInstruction",
    "UseAfterFree",
    "WarpgroupMisuse",
    "WarpWide",
    "bench",
    "bounds",
    "cuda_kernel",
    "device",
    "machine_code",
    "measure",
    "prices",
    "profile",
    "ptx_kernel",
    "report",
    "specs",
    "step",
    "tensor_map",
    "timeline",
    "torch_device",
    "vram",
]
__version__ = "0.1.0"


_LATE = {"report": "warplab.plots.kernel_report", "timeline": "warplab.plots.timeline"}


def __getattr__(name: str):
    """What draws is imported when it is first asked for, since it needs matplotlib."""
    if name not in _LATE:
        raise AttributeError(f"module 'warplab' has no attribute {name!r}")
    return getattr(_import_module(_LATE[name]), name)


def load_ipython_extension(shell) -> None:
    """``%load_ext warplab``: the cell magic ``%%cuda``. An import of warplab in a notebook does it too."""
    _cell_magic.register(shell)


def _start() -> None:
    found = device()
    if found.kind == "simt":
        _numba_hook.install(found.target)
        _mlir_hook.install_when_imported(found.target)
        _triton_hook.install_when_imported()
    else:
        _numba_hook.ask_for_line_information()
    if hasattr(_sys, "ps1") or "ipykernel" in _sys.modules:  # a person is reading
        print(f"warplab: kernels run on {found}")
    ipython = _sys.modules.get("IPython")
    if ipython is not None and (shell := ipython.get_ipython()) is not None:
        load_ipython_extension(shell)


_triton_hook.benchmark = _by_bound
_start()
torch_device = "cuda" if device().kind == "cuda" else "cpu"
