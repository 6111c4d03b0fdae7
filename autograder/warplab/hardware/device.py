"""Selects the device for kernels: a CUDA GPU if this machine has one, else the SIMT engine.

The GPU is detected without initialising CUDA.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import platform
import sys
from dataclasses import dataclass

from warplab.hardware import packages, specs
from warplab.hardware.target import LaunchLimits, Target

DEFAULT_ARCH = "sm_90"


@dataclass(frozen=True)
class Device:
    """The device for kernels: ``kind`` is "cuda" or "simt", ``target`` what kernels are compiled for."""

    name: str
    kind: str
    target: Target

    @property
    def arch(self) -> str:
        return self.target.arch

    @property
    def limits(self) -> LaunchLimits:
        return self.target.limits

    def __str__(self) -> str:
        if self.kind == "cuda":
            return f"{self.name} ({self.arch})"
        return (
            f"the SIMT engine: no CUDA GPU here, so kernels compiled for {self.arch} "
            "run on this CPU, checked and counted, not timed"
        )


class DeviceError(RuntimeError):
    """WARPLAB_DEVICE, WARPLAB_ARCH or WARPLAB_TRITON_ARCH names something unknown or unavailable, or a GPU
    is there without the packages that it needs.
    """


def engine_target() -> Target:
    """The engine's target, the same on every machine: WARPLAB_ARCH or sm_90."""
    return target_in("WARPLAB_ARCH", DEFAULT_ARCH)


def target_in(variable: str, default: str) -> Target:
    """The target that an environment variable names. Raises DeviceError for an unknown one."""
    name = os.environ.get(variable) or default
    try:
        return Target.of(name)
    except specs.SpecError as error:
        raise DeviceError(f"{variable}={name}: {error}") from None


def _cuda_present() -> bool:
    """Whether there is an NVIDIA GPU with its driver library. CUDA is not initialised, so a fork is safe."""
    windows = sys.platform == "win32"
    if not (windows or glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/dxg")):  # dxg: WSL2
        return False
    try:
        ctypes.CDLL("nvcuda.dll" if windows else "libcuda.so.1")
    except OSError:
        return False
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1")


@functools.cache
def device() -> Device:
    """The device of this process. The environment variable ``WARPLAB_DEVICE=simt|cuda`` forces one.

    Raises DeviceError if the variable has another value, if it is "cuda" and there is no GPU, or if there is
    a GPU and the packages that it needs are not installed.
    """
    wanted = os.environ.get("WARPLAB_DEVICE", "")
    if wanted not in ("", "simt", "cuda"):
        raise DeviceError(f"WARPLAB_DEVICE={wanted}: must be simt or cuda")
    present = wanted != "simt" and _cuda_present()
    if wanted == "cuda" and not present:
        raise DeviceError(
            "WARPLAB_DEVICE=cuda, but this machine has no NVIDIA GPU with a driver "
            "(no /dev/nvidia0 or libcuda.so.1); unset it to use the SIMT engine"
        )
    if not present:
        return Device("warplab SIMT engine", "simt", engine_target())
    if packages.missing("cuda"):
        raise DeviceError(
            "this machine has an NVIDIA GPU, but the packages for kernels on it are not installed. Run "
            f"{packages.command('cuda')} (in a terminal without the %), or set WARPLAB_DEVICE=simt before "
            "`import warplab` to use the SIMT engine"
        )
    name, arch = _gpu()
    return Device(name, "cuda", Target.of(arch, name))


def _gpu() -> tuple[str, str]:
    """(name, architecture) of GPU 0, by NVML, which does not create a CUDA context."""
    from cuda.bindings import nvml  # pyright: ignore[reportAttributeAccessIssue] - compiled, no stubs

    nvml.init_v2()
    try:
        handle = nvml.device_get_handle_by_index_v2(0)
        major, minor = nvml.device_get_cuda_compute_capability(handle)
        return nvml.device_get_name(handle), f"sm_{major}{minor}"
    finally:
        nvml.shutdown()


def processor() -> str:
    """The CPU's name from /proc/cpuinfo, else the platform's."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
