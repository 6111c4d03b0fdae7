"""missing: an empty folder."""

def submission(notebook, folder):
    return None
