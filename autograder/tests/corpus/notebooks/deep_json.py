"""malformed, too-deep: brackets, a hundred thousand deep."""

def submission(notebook, folder):
    return b"[" * 100_000
