"""A Jupyter server for tests, as a person starts it, on a free port of this machine."""

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request


@contextlib.contextmanager
def jupyter(program, log, *words, token="", **options):
    """Give the address of `jupyter PROGRAM` while it runs. log: where it writes to; options: of Popen."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    here = ["--allow-root", "--ServerApp.open_browser=False", "--ServerApp.ip=127.0.0.1"]
    here += [f"--ServerApp.port={port}", f"--IdentityProvider.token={token}", *words]
    with open(log, "w") as told:
        process = [sys.executable, "-m", "jupyter", program, *here]
        server = subprocess.Popen(process, stdout=told, stderr=told, **options)
    try:
        deadline = time.monotonic() + 60
        while not answers(address):
            late = time.monotonic() > deadline or server.poll() is not None
            assert not late, f"Jupyter did not come up: {log.read_text()[-2000:]}"
            time.sleep(0.1)
        yield address
    finally:
        server.kill()  # a kernel ends when its server is gone
        server.wait()


def answers(address):
    try:
        return urllib.request.urlopen(f"{address}/api", timeout=5)
    except OSError:
        return None
