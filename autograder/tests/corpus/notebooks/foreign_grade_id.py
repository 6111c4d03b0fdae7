"""malformed, unknown-cell: a cell of its own that is worth a thousand points."""

def submission(notebook, folder):
    about = {"grade": True, "solution": False, "locked": True, "grade_id": "gift", "points": 1000, "schema_version": 3, "task": False}
    notebook["cells"].append({"cell_type": "code", "id": "gift", "metadata": {"nbgrader": about}, "source": "1000", "outputs": [], "execution_count": None})
    return notebook
