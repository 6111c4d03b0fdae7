"""malformed, link-outside: a link to the notebook with the solutions."""

def submission(notebook, folder):
    (folder / "ps01_tiny.ipynb").symlink_to(folder.parents[1] / "_build/source/ps01/ps01_tiny.ipynb")
    return None
