"""malformed, duplicate-cell: an own cell that takes a test cell's id."""

def submission(notebook, folder):
    test = next(one for one in notebook["cells"] if one["id"] == "time_it-test")
    notebook["cells"].insert(0, test | {"id": "mine", "source": "1000"})
    return notebook
