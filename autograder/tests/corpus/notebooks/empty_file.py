"""malformed, empty: nothing."""

def submission(notebook, folder):
    return b""
