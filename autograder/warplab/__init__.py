"""warplab: CUDA kernels from a notebook, on a GPU if there is one and on the SIMT engine if not.

``import warplab`` before the first kernel is launched. It says once which device it found.
"""

import sys as _sys

from . import specs
from .bench import NotTimed, Timing, bench
from .device import Device, DeviceError, device
from .measure import measure
from .profile import Profile, ProfileError, profile
from .simt.frontends.cuda_cpp import cuda_kernel
from .simt.toolchain.nvrtc import CompileError
from .simt.errors import (
    BarrierDivergence,
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
    WarpWide,
)
from .simt.sanitizer.global_races import GlobalConflict

__all__ = [
    "BarrierDivergence",
    "CompileError",
    "Device",
    "DeviceError",
    "GlobalConflict",
    "InvalidLaunch",
    "KernelAssertion",
    "LaunchError",
    "MisalignedAccess",
    "NoProgress",
    "NotTimed",
    "OutOfBounds",
    "Profile",
    "ProfileError",
    "SharedRace",
    "Timing",
    "StackOverflow",
    "UnfinishedCopy",
    "UninitialisedRead",
    "UnsupportedInstruction",
    "UseAfterFree",
    "WarpWide",
    "bench",
    "cuda_kernel",
    "device",
    "measure",
    "profile",
    "specs",
    "torch_device",
]
__version__ = "0.1.0"


def _start() -> None:
    from .device import arch, capability
    from .simt.frontends import numba_hook

    found = device()
    if found.kind == "simt":
        numba_hook.install(capability(arch()))
    else:
        numba_hook.ask_for_line_information()
    if hasattr(_sys, "ps1") or "ipykernel" in _sys.modules:  # a person is reading
        print(f"warplab: kernels run on {found}")


_start()
torch_device = "cuda" if device().kind == "cuda" else "cpu"
