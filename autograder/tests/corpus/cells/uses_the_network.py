"""30 points: sends a message to the machine that grades, over TCP, UDP, IPv6 and a name."""

import socket

for family, kind, to in (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", @PORT@)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", @PORT@)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("::1", @PORT@)),
    (socket.AF_UNIX, socket.SOCK_STREAM, "\0canary-@PORT@"),
):
    try:
        with socket.socket(family, kind) as line:
            line.settimeout(1)
            line.connect(to)
            line.send(b"leak")
    except OSError:
        continue
    raise ValueError(f"connected to {to}")
try:
    socket.create_connection(("localhost", @PORT@), 1)
except OSError:
    pass


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
