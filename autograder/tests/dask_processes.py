"""A Dask cluster of real processes for tests: a scheduler and workers that can be killed and stopped."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import forked_commands
import pytest
from distributed.security import Security

# for each worker: whoever edits our sources meanwhile makes no other version of them
ONE_VERSION = "import autograder.results\nautograder.results.course_version = lambda: 'test'\n"
# each "task-finished" goes to the scheduler twice
TWICE = """
from distributed.batched import BatchedSend
def twice(self, *messages):
    for message in messages:
        self.once(*[dict(message)] * (2 if message.get("op") == "task-finished" else 1))
if not hasattr(BatchedSend, "once"):  # Dask loads a file of this kind more than once
    BatchedSend.once, BatchedSend.send = BatchedSend.send, twice
"""


class Cluster:
    """A scheduler on a free port of 127.0.0.1, and worker processes without nannies. A context manager.

    certificates: CA file, certificate and key for TLS; without them the traffic is open.
    """

    def __init__(self, folder, preload=ONE_VERSION, certificates=()):
        self.folder, self.left = Path(folder), contextlib.ExitStack()
        self.tls = tls_options(certificates)
        self.preload = self.folder / "preload_worker.py"
        self.preload.write_text(preload)
        self.started = 0

    def __enter__(self):
        self.address = self.start_scheduler(f"{'tls' if self.tls else 'tcp'}://127.0.0.1:0")
        return self

    def __exit__(self, *_):
        self.left.close()

    def start_scheduler(self, address):
        """Returns its address; at the port of an earlier one, it is that one's successor."""
        port = address.rsplit(":", 1)[1]
        where = ("--protocol", address.split(":")[0], "--host", "127.0.0.1", "--port", port)
        self.scheduler = self._start("distributed.cli.dask_scheduler", *where, "--no-dashboard")
        log = self.folder / f"process{self.started}.log"
        deadline = time.monotonic() + 120
        while not (found := re.search(r"(?:tcp|tls)://127\.0\.0\.1:\d+", log.read_text())):
            assert time.monotonic() < deadline and self.scheduler.poll() is None, log.read_text()
            time.sleep(0.1)
        return found[0]

    def start_worker(self, *more):
        """A worker of one thread. Returns its process."""
        quiet = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0")
        where = ("--preload", str(self.preload), "--local-directory", str(self.folder / "scratch"))
        return self._start("distributed.cli.dask_worker", self.address, *quiet, *where, *more)

    def _start(self, module, *words):
        self.started += 1
        log = self.left.enter_context(open(self.folder / f"process{self.started}.log", "w"))
        process = subprocess.Popen(
            [sys.executable, "-m", module, *words, *self.tls], stdout=log, stderr=log, cwd=self.folder
        )
        self.left.callback(end, process)
        return process


def tls_options(certificates):
    """The options of a scheduler and its workers."""
    names = ("--tls-ca-file", "--tls-cert", "--tls-key")
    return [word for pair in zip(names, map(str, certificates), strict=False) for word in pair]


def tls_settings(certificates):
    """The same for a client, as Dask's configuration has it."""
    names = ("ca-file", "client.cert", "client.key")
    return {f"distributed.comm.tls.{name}": str(file) for name, file in zip(names, certificates, strict=True)}


def made_certificates(folder):
    """CA file, certificate and key, made for this folder."""
    made = Security.temporary()
    texts = {"ca.pem": made.tls_ca_file, "cert.pem": made.tls_client_cert, "key.pem": made.tls_client_key}
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(str(text))
    return [folder / name for name in texts]


def end(process):
    """Kill and wait, whatever state it is in."""
    process.kill()
    process.wait()


def grader(root, *words):
    """`autograder grade ps01` in a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.results.course_version", lambda: "test")
        return forked_commands.autograder(
            ["grade", "ps01", "--Grade.seed=5", *map(str, words)],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"COLUMNS": "200"},
        )


@contextlib.contextmanager
def stopped(process):
    """It does nothing while the block runs, and goes on afterwards."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
