"""malformed, not-a-file: a folder with the notebook's name."""

def submission(notebook, folder):
    (folder / "ps01_tiny.ipynb").mkdir()
    return None
