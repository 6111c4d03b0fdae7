"""30 points: test cells that say 1000, or another task's name."""

def submission(notebook, folder):
    for one in notebook["cells"]:
        if one["id"].endswith("-test"):
            one["source"] = "1000.0"
            one["metadata"]["warplab"] = {"task": "ps01/grayscale"}
    return notebook
