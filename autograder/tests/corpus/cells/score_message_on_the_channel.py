"""15 points, crashed: sends a score, for which there is no message."""

import json
import os
import stat

line = json.dumps({"body": {"type": "Verdict", "score": 35.0, "status": "graded"}, "arrays": []}).encode() + b"\n"


def launch_plan(width, height, block):
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, line)
        except OSError:
            pass
    return (1, 1), 0
