"""malformed, duplicate-cell: a solution cell copied with its id."""

def submission(notebook, folder):
    notebook["cells"].append(notebook["cells"][3] | {"id": "copy"})
    return notebook
