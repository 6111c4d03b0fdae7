"""malformed, long-cell: one cell of a million characters."""

def submission(notebook, folder):
    notebook["cells"][3]["source"] = "#" * 1_000_000
    return notebook
