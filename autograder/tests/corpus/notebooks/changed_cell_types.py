"""30 points: answers as markdown, tests as raw text."""

def submission(notebook, folder):
    for one in notebook["cells"]:
        if one["id"] in ("launch_plan", "time_it-test"):
            one["cell_type"] = "markdown"
            one.pop("outputs", None)
            one.pop("execution_count", None)
    return notebook
