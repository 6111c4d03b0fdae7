"""30 points: cells of its own that claim to be tests of this course."""

def submission(notebook, folder):
    mine = {"cell_type": "code", "metadata": {"warplab": {"task": "ps01/time_it"}, "tags": ["hide"]}, "outputs": [], "execution_count": None}
    notebook["cells"].append(mine | {"id": "a", "source": "grade = lambda *_: 1000.0"})
    notebook["cells"].append(mine | {"id": "b", "source": "grade('ps01/time_it', None)"})
    return notebook
