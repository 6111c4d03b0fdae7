"""malformed, bad-schema: numbers where cells belong."""

def submission(notebook, folder):
    notebook["cells"].append(7)
    return notebook
