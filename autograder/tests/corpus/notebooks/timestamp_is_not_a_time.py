"""30 points: a timestamp far in the future, in words."""

def submission(notebook, folder):
    (folder / "timestamp.txt").write_text("999999999999-99-99 tomorrow")
    return notebook
