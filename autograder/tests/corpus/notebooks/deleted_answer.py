"""malformed, missing-cell: an answer's cell is gone."""

def submission(notebook, folder):
    notebook["cells"] = [one for one in notebook["cells"] if one["id"] != "time_it"]
    return notebook
