"""malformed, wrong-format: a notebook of the future."""

def submission(notebook, folder):
    notebook["nbformat"] = 5
    return notebook
