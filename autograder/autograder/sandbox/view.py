"""What a jailed process can see: Python, the libraries, warplab, a few devices, an empty home. Everything else does not exist for it.

`visible()` lists it; `build()` makes it, from inside fresh namespaces. All that can be written is one tmpfs of a fixed size.
"""

import importlib.util
import os
import sys
from pathlib import Path

from autograder.sandbox import kernel

JOB = "/job"
DEV = Path("/dev")
WRITABLE = (f"{JOB}/home", "/tmp", "/dev/shm")
LINKS = {"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM += ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
PROCESSORS = "/sys/devices/system"  # how many cores there are and how they are shared out
# Of NVIDIA's devices what its Container Toolkit passes for `compute`: cards, control, unified memory, MIG's capabilities; on WSL2 the one
# that stands for them all. Not nvidia-modeset and nvidia-drm, which drive displays. The driver's libraries are in SYSTEM or LD_LIBRARY_PATH.
GPU_DEVICES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps", "dxg")
PCI = ("/sys/bus/pci", "/sys/devices")  # where the CUDA driver looks for its cards
WARPLAB = Path(importlib.util.find_spec("warplab").origin).parent
MAX_FILES = 20_000
NAMES = {
    "/etc/passwd": "root:x:0:0::/:/bin/false\nstudent:x:{uid}:{gid}::/job/home:/bin/sh\n",
    "/etc/group": "root:x:0:\nstudent:x:{gid}:\n",
}


def visible(gpu):
    """Folders, files and links that the jail shows read-only, at their own paths, as a sorted list without anything nested."""
    wanted = [sys.prefix, sys.base_prefix, *SYSTEM, *_course(), *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    wanted += PCI if gpu and gpu_devices() else [PROCESSORS]
    paths = sorted({os.path.normpath(path) for path in wanted if path.startswith("/") and os.path.lexists(path)} - {"/"})
    return [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]


def gpu_devices():
    """The device files, and MIG's folder of them, that a process needs for CUDA on this machine."""
    return sorted(str(path) for pattern in GPU_DEVICES for path in DEV.glob(pattern))


def cuda_obstacle():
    """What would keep a jailed process from CUDA on a machine that has a GPU, as a clause with the next step; "" if nothing is seen."""
    if not any(DEV.glob("nvidia[0-9]*")):
        return ""
    if missing := [str(DEV / name) for name in ("nvidiactl", "nvidia-uvm") if not (DEV / name).exists()]:
        # a setuid program makes them when somebody first uses the driver, and a jailed process may run none
        return f"{' and '.join(missing)} does not exist yet: run `nvidia-modprobe -u -c 0`"
    for path in gpu_devices():
        if not os.path.isdir(path) and os.stat(path).st_mode & 0o006 != 0o006 and os.geteuid() == 0:
            return f"{path} is closed to the jailed user, who is in no group: chmod 666, for good by the driver's NVreg_DeviceFileMode=0666"
    return ""


def devices(gpu):
    """Device files of the jail."""
    return [path for path in (*DEVICES, *(gpu_devices() if gpu else ())) if os.path.exists(path)]


def covered():
    """Folders inside visible ones that the jail shows empty: warplab's tasks, which hold the references."""
    return [str(WARPLAB / "tasks")]


def _course():
    """warplab and what its links lead to; of autograder nothing, because the warm parent has imported all that a worker needs."""
    return [str(WARPLAB), *(str(path.resolve()) for path in WARPLAB.iterdir() if path.is_symlink() and path.exists())]


def build(disk_mib, student, gpu):
    """Make the view and move into it.

    student: the uid (and gid) that owns what is writable. Runs as process 1 of new mount and pid namespaces; raises OSError.
    """
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    trees = []
    for path in visible(gpu):
        if os.path.islink(path):
            trees.append((path, os.readlink(path)))
        else:
            tree = kernel.clone_tree(path)
            kernel.restrict_tree(tree, kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NODEV)
            trees.append((path, tree))
    for path in devices(gpu):
        tree = kernel.clone_tree(path)
        kernel.restrict_tree(tree, kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NOEXEC)
        trees.append((path, tree))
    is_folder = {path: os.path.isdir(path) for path, _ in trees}

    root = "/tmp"  # any folder will do: only this process's namespace sees what is put over it
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"size={disk_mib}m,nr_inodes={MAX_FILES},mode=755")
    for path, tree in trees:
        target = root + path
        if isinstance(tree, str):
            os.symlink(tree, target)
            continue
        if is_folder[path]:
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            open(target, "x").close()
        kernel.attach_tree(tree, target)
    os.makedirs(f"{root}{JOB}/empty")
    for path in covered():
        tree = kernel.clone_tree(f"{root}{JOB}/empty")
        kernel.restrict_tree(tree, kernel.ATTR_RDONLY)
        kernel.attach_tree(tree, root + path)
    os.makedirs(f"{root}/etc", exist_ok=True)
    for path, text in NAMES.items():
        Path(root + path).write_text(text.format(uid=student, gid=student), encoding="ascii")
    for path, target in LINKS.items():
        os.symlink(target, root + path)
    os.mkdir(f"{root}/proc")
    kernel.mount("proc", f"{root}/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    for path in WRITABLE:
        os.makedirs(root + path, exist_ok=True)
        os.chown(root + path, student, student)
        kernel.attach_tree(kernel.clone_tree(root + path), root + path)
    kernel.restrict_tree(kernel.AT_FDCWD, kernel.ATTR_RDONLY, root.encode(), recursive=False)
    kernel.pivot_to(root)
