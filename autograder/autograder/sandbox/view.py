"""The file system of a sandboxed process: Python, libraries, warplab, a few devices, an empty home.

Nothing else exists for it. `visible()` lists the contents; `build()` mounts them, inside new namespaces. The
only writable part is one tmpfs of a fixed size.
"""

import importlib.util
import os
import sys
from pathlib import Path

from autograder.sandbox import linux

JOB = "/job"
DEV = Path("/dev")
WRITABLE = (f"{JOB}/home", "/tmp", "/dev/shm")
LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}
# not /dev/zero: memory of its shared mappings can outlive the processes that map it
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
LINKER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", *LINKER)
# how many cores there are; other files in that folder show what all processes of the machine do
PROCESSORS = tuple(f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present"))
# The devices that NVIDIA's Container Toolkit passes for `compute`: cards, control, unified memory, MIG's
# capabilities; on WSL2 the single device dxg. Not nvidia-modeset and nvidia-drm, which drive displays. The
# driver's libraries are in SYSTEM or LD_LIBRARY_PATH.
GPU_DEVICES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps", "dxg")
PCI = ("/sys/bus/pci", "/sys/devices")  # where the CUDA driver looks for its cards
COURSE = importlib.util.find_spec("warplab")  # not imported, to keep the reader's warm parent small
assert COURSE is not None and COURSE.origin is not None  # it is installed together with this package
WARPLAB = Path(COURSE.origin).parent
MAX_FILES = 20_000
NAMES = {
    "/etc/passwd": "root:x:0:0::/:/bin/false\nstudent:x:{uid}:{gid}::/job/home:/bin/sh\n",
    "/etc/group": "root:x:0:\nstudent:x:{gid}:\n",
}


def visible(gpu: bool) -> list[str]:
    """Folders, files and links that the jail shows read-only at their own paths; sorted, none inside another.

    autograder is not among them, as the warm parent has imported all that a worker needs.
    """
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    wanted = [sys.prefix, sys.base_prefix, *SYSTEM, str(WARPLAB), *libraries]
    wanted += PCI if has_gpu(gpu) else PROCESSORS
    there = {os.path.normpath(path) for path in wanted if path.startswith("/") and os.path.lexists(path)}
    there |= {os.path.realpath(path) for path in there}  # a virtual environment may be a symbolic link
    paths = sorted(there - {"/", *WRITABLE})
    return [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]


def readable(gpu: bool) -> list[str]:
    """Folders whose files a jailed process may open. In /proc it may only list names and read links.

    The files of /proc reveal things shared by all processes of the machine, such as the ids of eventfds and
    which pages of a library others have mapped. With a GPU they may be opened, as NVIDIA's driver reads them.
    """
    return [f"/{name}" for name in os.listdir("/") if name != "proc" or has_gpu(gpu)]


def gpu_devices() -> list[str]:
    """The device files, and MIG's folder of device files, that CUDA needs on this machine."""
    return sorted(str(path) for pattern in GPU_DEVICES for path in DEV.glob(pattern))


def has_gpu(gpu: bool) -> bool:
    """Whether a process has a GPU: it may use one (gpu), and the machine has one."""
    return gpu and bool(gpu_devices())


def cuda_obstacle() -> str:
    """What would keep a jailed process from using this machine's GPU, with the next step; "" for nothing."""
    if not any(DEV.glob("nvidia[0-9]*")):
        return ""
    if missing := [str(DEV / name) for name in ("nvidiactl", "nvidia-uvm") if not (DEV / name).exists()]:
        # a setuid program makes them when the driver is first used; a jailed process cannot run one
        return f"{' and '.join(missing)} does not exist yet: run `nvidia-modprobe -u -c 0`"
    for path in gpu_devices():
        if _is_closed(path) and os.geteuid() == 0:
            return (
                f"{path} is closed to the jailed user, who is in no group: "
                "chmod 666, for good by the driver's NVreg_DeviceFileMode=0666"
            )
    return ""


def _is_closed(path: str) -> bool:
    """Whether a device file refuses users who are neither its owner nor in its group."""
    return not os.path.isdir(path) and os.stat(path).st_mode & 0o006 != 0o006


def devices(gpu: bool) -> list[str]:
    """Device files of the jail."""
    return [path for path in (*DEVICES, *(gpu_devices() if gpu else ())) if os.path.exists(path)]


def driven(gpu: bool) -> list[str]:
    """Files that a jailed process may write and control besides its own: devices, and with a GPU /proc.

    CUDA's driver names its threads in /proc/self/task/<thread>/comm, and cuInit fails if it cannot.
    """
    return [*devices(gpu), *(["/proc"] if has_gpu(gpu) else [])]


def covered() -> list[str]:
    """Folders inside visible ones that the jail shows empty: warplab's tasks, which hold the references."""
    return [str(WARPLAB / "tasks")]


def build(disk_mib: int, student: int, gpu: bool) -> None:
    """Mount the jail's file system and make it the root. Raises OSError.

    disk_mib: size of the writable tmpfs. student: the uid and gid that owns it. gpu: whether to pass in the
    GPU's devices. To be called by process 1 of new mount and pid namespaces.
    """
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    trees: list[tuple[str, int | str]] = []  # (path, descriptor of detached mounts or a link's target)
    for path in visible(gpu):
        if os.path.islink(path):
            trees.append((path, os.readlink(path)))
        else:
            tree = linux.clone_tree(path)
            linux.restrict_tree(tree, linux.ATTR_RDONLY | linux.ATTR_NOSUID | linux.ATTR_NODEV)
            trees.append((path, tree))
    for path in devices(gpu):
        tree = linux.clone_tree(path)
        linux.restrict_tree(tree, linux.ATTR_RDONLY | linux.ATTR_NOSUID | linux.ATTR_NOEXEC)
        trees.append((path, tree))
    is_folder = {path: os.path.isdir(path) for path, _ in trees}

    root = "/tmp"  # any folder will do: what is mounted over it is seen in this namespace only
    size = f"size={disk_mib}m,nr_inodes={MAX_FILES},mode=755"
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, size)
    for path, tree in trees:
        target = root + path
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if isinstance(tree, str):
            os.symlink(tree, target)
            continue
        if is_folder[path]:
            os.makedirs(target, exist_ok=True)
        else:
            open(target, "x").close()
        linux.attach_tree(tree, target)
    os.makedirs(f"{root}{JOB}/empty")
    for path in covered():
        tree = linux.clone_tree(f"{root}{JOB}/empty")
        linux.restrict_tree(tree, linux.ATTR_RDONLY)
        linux.attach_tree(tree, root + path)
    os.makedirs(f"{root}/etc", exist_ok=True)
    for path, text in NAMES.items():
        Path(root + path).write_text(text.format(uid=student, gid=student), encoding="ascii")
    for path, target in LINKS.items():
        os.symlink(target, root + path)
    os.mkdir(f"{root}/proc")
    # only the processes of /proc: the rest shows the whole machine's activity, a channel between jails
    options = "" if has_gpu(gpu) else "subset=pid"
    linux.mount("proc", f"{root}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, options)
    for path in WRITABLE:
        os.makedirs(root + path, exist_ok=True)
        os.chown(root + path, student, student)
        linux.attach_tree(linux.clone_tree(root + path), root + path)
    linux.restrict_tree(linux.AT_FDCWD, linux.ATTR_RDONLY, root.encode(), recursive=False)
    linux.pivot_to(root)
