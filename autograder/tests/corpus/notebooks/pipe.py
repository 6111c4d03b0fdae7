"""malformed, not-a-file: a pipe that nobody writes to, for a grader that waits."""

import os


def submission(notebook, folder):
    os.mkfifo(folder / "ps01_tiny.ipynb")
    return None
