"""30 points: the test cells are gone; they come back."""

def submission(notebook, folder):
    notebook["cells"] = [one for one in notebook["cells"] if not one["id"].endswith("-test")]
    return notebook
