"""30 points: lifts its limits, leaves its namespaces, mounts and changes root."""

import ctypes
import os
import resource

libc = ctypes.CDLL(None, use_errno=True)
for limit in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU):
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        pass
if os.getuid() == 0:
    raise ValueError("root")
for name, arguments in {"unshare": (0x10000000,), "mount": (b"none", b"/", b"tmpfs", 0, 0), "chroot": (b"/tmp",), "setuid": (0,)}.items():
    if getattr(libc, name)(*arguments) == 0:
        raise ValueError(name)


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
