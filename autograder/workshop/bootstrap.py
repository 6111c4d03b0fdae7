"""Make the course's virtual environment: `python3 autograder/workshop/bootstrap.py`, called by `make venv`.

It runs before anything is installed, so it uses only the standard library, and syntax of Python 3.8. If
something is missing (a new enough Python, the venv module, disk space, the package index) it ends with one
line: what was found, what is needed, the next step. A second run does nothing until requirements.txt, its
lock, pyproject.toml or Python change.
"""

import argparse
import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST, NEWEST = (3, 11), (3, 13)
# measured: .venv with the CPU build of torch is 3.8 GB, and pip unpacks into a temporary copy of each wheel
NEED_GB = 5.0
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
WATCHED = ("requirements.txt", "autograder/constraints.txt", "autograder/pyproject.toml")


class Stop(Exception):
    """The set-up cannot go on; the message is one line for the user."""


def supported(version):
    """Whether the pinned packages have wheels for Python (major, minor)."""
    return OLDEST <= tuple(version[:2]) <= NEWEST


def dotted(version):
    return ".".join(map(str, version[:2]))


def version_of(python):
    """(major, minor) of an interpreter, or None where it does not run."""
    ask = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        answer = subprocess.run(
            ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=True
        ).stdout
        return tuple(int(part) for part in answer.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def choose_python(running=None, which=shutil.which, version=version_of):
    """Path of a supported interpreter: the running one, else the newest python3.X on PATH. Raises Stop."""
    running = tuple(running or sys.version_info[:2])
    if supported(running):
        return sys.executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = which(f"python3.{minor}")
        if found and version(found) == (3, minor):
            return found
    raise Stop(
        f"found Python {dotted(running)}, but the course needs 3.11, 3.12 or 3.13; install one (Debian and "
        "Ubuntu: apt-get "
        "install python3.11 python3.11-venv) and run make again, or name it: make course "
        "PYTHON=/path/to/python3.12"
    )


def check_venv_module(python):
    """Raise Stop if the venv module or ensurepip is missing, as on Debian, where it is a package of its own.

    `python -m venv` would fail halfway with a long message.
    """
    code = subprocess.run(
        [python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL, check=False
    ).returncode
    if code:
        name = f"python{dotted(version_of(python) or OLDEST)}-venv"
        raise Stop(
            f"{python} has no venv module; install it (Debian and Ubuntu: apt-get install {name}) and run "
            "make again"
        )


def check_disk(folder, need_gb=NEED_GB, usage=shutil.disk_usage):
    """Raise Stop if the file system of `folder` has less than `need_gb` decimal gigabytes free."""
    free = usage(str(folder)).free / 1e9
    if free < need_gb:
        raise Stop(
            f"{folder} has {free:.1f} GB free, but the set-up needs about {need_gb:.0f} GB; free some space "
            "and run make again"
        )


def why_pip_failed(log):
    """The reason of a failure in one line for the user, from pip's output."""
    if re.search(r"No space left on device|Errno 28", log):
        return "the disk filled up while packages were being installed; free some space and run make again"
    network = (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|Connection (refused|timed "
        r"out)|ProxyError|Max retries exceeded"
    )
    if re.search(network, log):
        return (
            "the package index (PyPI, or the one in your pip settings) did not answer; check the network or "
            "proxy and run make again"
        )
    errors = [line.strip() for line in log.splitlines() if line.startswith("ERROR")]
    return (
        "pip failed: "
        + (errors[-1] if errors else "no reason given")
        + "; the whole log is in _build/install.log"
    )


def run_pip(python, arguments, log_path, say):
    """Run `pip install`, show one short line a package, write everything to `log_path`. Raises Stop."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--retries",
        "2",
        "--progress-bar",
        "off",
    ]
    shown = re.compile(
        r"\s*(Collecting|Downloading|Installing collected|Successfully)\b[^(\n]{0,90}(\([\d.]+ [kMG]B\))?"
    )
    with open(str(log_path), "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command + arguments, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for raw in process.stdout or ():
            line = raw.decode("utf-8", "replace")
            log.write(line)
            found = shown.match(line)
            if found and "Collecting" not in line:
                say("    " + found.group(0).strip()[:110])
        code = process.wait()
    if code:
        raise Stop(why_pip_failed(log_path.read_text(encoding="utf-8", errors="replace")))


def fingerprint(root, python_version):
    """Hash of all that decides what is installed, except for the build of torch: both satisfy the pin."""
    digest = hashlib.sha256(repr(python_version).encode())
    for name in WATCHED:
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


@contextmanager
def alone(root, say):
    """Lock the set-up of `root`: two installations into one environment at once would break it."""
    (root / "_build").mkdir(exist_ok=True)
    with open(str(root / "_build" / "install.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("  another make is setting this up; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_venv(root, venv, torch, say):
    """Create or update the environment `venv`. Returns whether something was installed. Raises Stop."""
    own, stamp = venv / "bin" / "python", venv / ".course-stamp"
    have = version_of(str(own)) if own.exists() else None
    if have and stamp.exists() and stamp.read_text() == fingerprint(root, have):
        return False
    check_disk(root, need_gb=1.0 if stamp.exists() else NEED_GB)
    if not have or not supported(have):
        python = choose_python()
        check_venv_module(python)
        say(f"  environment: {venv} from {python} (Python {dotted(version_of(python))})")
        try:
            subprocess.run([python, "-m", "venv", "--clear", str(venv)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Stop(f"could not make {venv}: {error}") from error
    if stamp.exists():
        stamp.unlink()
    say("  packages: some 200 from the package index, a few minutes the first time (log: _build/install.log)")
    if torch != "cpu" and not shutil.which("nvidia-smi"):
        say(
            "    no NVIDIA driver here: `make course TORCH=cpu` takes PyTorch's CPU build, a much smaller "
            "download"
        )
    index = ["--extra-index-url", CPU_INDEX] if torch == "cpu" else []
    run_pip(own, ["-r", "requirements.txt"] + index, root / "_build" / "install.log", say)
    stamp.write_text(fingerprint(root, version_of(str(own))))
    return True


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Make or update the course's virtual environment.")
    parser.add_argument("--venv", default=str(ROOT / ".venv"), help="where the environment goes")
    parser.add_argument(
        "--torch", choices=["", "cpu"], default="", help="cpu: take PyTorch's CPU build from its own index"
    )
    options = parser.parse_args(arguments)
    venv = Path(options.venv).absolute()

    def say(text):
        print(text, flush=True)

    try:
        with alone(ROOT, say):
            changed = make_venv(ROOT, venv, options.torch, say)
    except Stop as reason:
        print(f"make: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("make: stopped; run it again to go on where it stopped", file=sys.stderr)
        return 130
    print("environment: " + ("ready" if changed else "up to date"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
