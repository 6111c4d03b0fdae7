"""missing: the notebook under another name."""

def submission(notebook, folder):
    (folder / "my answers.ipynb").write_text("{}")
    return None
