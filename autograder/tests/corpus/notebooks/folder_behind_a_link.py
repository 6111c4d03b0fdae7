"""malformed, link-outside: the whole folder is a link to the solutions."""

def submission(notebook, folder):
    (folder / "ps01").symlink_to(folder.parents[1] / "_build/source/ps01")
    return None
