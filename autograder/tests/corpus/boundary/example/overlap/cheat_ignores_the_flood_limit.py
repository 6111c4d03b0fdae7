"""0 points: the same, and catches the refusal; the task's time runs out."""

import contextlib

from warplab.virtual_device import DeviceError


def overlap(device, pieces):
    while True:
        with contextlib.suppress(DeviceError):
            device.clock()
