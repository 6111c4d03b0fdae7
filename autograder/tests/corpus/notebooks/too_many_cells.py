"""malformed, too-many-cells: two thousand cells."""

def submission(notebook, folder):
    notebook["cells"] += [{"cell_type": "markdown", "id": f"m{n}", "metadata": {}, "source": ""} for n in range(2000)]
    return notebook
