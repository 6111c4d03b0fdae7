"""0 points: names an array where the device expects a name, which would end in an error of the judge's."""

import numpy as np

def time_it(device, work, repeats):
    for junk in (np.zeros(3), {"a": np.zeros(3)}, [[[np.zeros(1)]]], 1.5, True, 10**400):
        for key in ("work", "stream", "arrays"):
            reply = device._call({"op": "launch", "work": "work", "stream": 0} | {key: junk})
            assert key == "arrays" or set(reply) == {"error"}, reply
    device._call({"op": "launch", "work": np.zeros(3)})
    raise RuntimeError("refused")
