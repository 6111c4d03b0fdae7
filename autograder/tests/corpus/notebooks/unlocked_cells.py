"""30 points: locked is false, grade is false, the ids stay."""

def submission(notebook, folder):
    for one in notebook["cells"]:
        about = one["metadata"].get("nbgrader", {})
        if about.get("locked"):
            about["locked"] = about["task"] = False
    return notebook
