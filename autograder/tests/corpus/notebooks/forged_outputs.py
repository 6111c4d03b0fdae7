"""30 points: outputs that show full marks, with a script."""

def submission(notebook, folder):
    shown = {"text/plain": "1000 of 15 points", "text/html": "<script>alert(1)</script><h1>1000 of 15 points</h1>"}
    for one in notebook["cells"]:
        if one["cell_type"] == "code":
            one["outputs"] = [{"output_type": "display_data", "data": shown, "metadata": {}}]
    return notebook
