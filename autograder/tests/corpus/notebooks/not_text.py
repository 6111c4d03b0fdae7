"""malformed, not-text: a picture with the notebook's name."""

def submission(notebook, folder):
    return b"\x89PNG\r\n\x1a\n" + bytes(100)
