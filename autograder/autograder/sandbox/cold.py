"""`python -m autograder.sandbox.cold JOB CHANNEL REPORT INFO`: what bubblewrap executes.

It imports what the role needs, and then goes on as a warm child would.
"""

import importlib
import json
import os
import sys

from autograder.sandbox.job import JailedJob
from autograder.sandbox.keeper import become_init

if __name__ == "__main__":
    job = JailedJob.from_plain(json.loads(sys.argv[1]))
    channel, report, info = map(int, sys.argv[2:])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it was `report`, for what bwrap itself has to say
    importlib.import_module(job.module)
    become_init(job, channel, report, info)
