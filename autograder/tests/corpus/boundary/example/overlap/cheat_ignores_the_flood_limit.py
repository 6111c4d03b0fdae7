"""0 points: the same, and catches the refusal; the task's time runs out."""

import contextlib

from warplab.crossing.virtual_device import VirtualDeviceError


def overlap(device, pieces):
    while True:
        with contextlib.suppress(VirtualDeviceError):
            device.clock()
