"""A Slurm of this machine alone for tests, with a key, ports and folders of its own; Debian's packages."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
PARTITION = "grading"
SETTINGS = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory=4000 State=UNKNOWN
PartitionName={partition} Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The packages whose programs are not here."""
    return [package for program, package in PROGRAMS.items() if not _program(program)]


def _program(name):
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@contextlib.contextmanager
def slurm(folder: Path):
    """Give the path of its slurm.conf while its three daemons run. Raises TimeoutError with their words."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    folder.chmod(0o755)  # munged wants a socket that others can reach
    user, host = pwd.getpwuid(os.geteuid()).pw_name, socket.gethostname().split(".")[0]
    ports = _free_ports(2)
    settings = folder / "slurm.conf"
    settings.write_text(
        SETTINGS.format(
            folder=folder,
            user=user,
            host=host,
            port=ports[0],
            node_port=ports[1],
            processors=max(2, os.cpu_count() or 1),
            partition=PARTITION,
        )
    )
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    places = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    munge = [f"--{option}={folder}/munge.{ending}" for option, ending in places.items()]
    environment = os.environ | {"SLURM_CONF": str(settings)}
    with contextlib.ExitStack() as left:

        def start(*words):
            log = left.enter_context(open(folder / f"{words[0]}.log", "w"))
            program, *options = words
            process = subprocess.Popen([_program(program), *options], stdout=log, stderr=log, env=environment)
            left.callback(_end, process)

        start("munged", "--foreground", "--force", f"--key-file={key}", *munge)
        _until(lambda: (folder / "munge.socket").exists(), folder)
        start("slurmctld", "-D", "-f", str(settings))
        start("slurmd", "-D", "-f", str(settings), "-N", host)
        _until(lambda: "idle" in _state(environment), folder)
        yield settings


def _state(environment):
    words = ["sinfo", "--noheader", "--format=%T"]
    try:
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=20).stdout
    except subprocess.TimeoutExpired:
        return ""


def _until(condition, folder, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            words = [f"{log.name}: {log.read_text()[-800:]}" for log in sorted(folder.glob("*.log"))]
            raise TimeoutError("\n".join(["Slurm did not come up", *words]))
        time.sleep(0.2)


def _free_ports(number):
    with contextlib.ExitStack() as left:
        found = [left.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [one.getsockname()[1] for one in found]


def _end(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
