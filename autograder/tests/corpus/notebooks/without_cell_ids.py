"""30 points: saved by a Jupyter that has no cell ids."""

def submission(notebook, folder):
    notebook["nbformat_minor"] = 4
    for one in notebook["cells"]:
        del one["id"]
    return notebook
