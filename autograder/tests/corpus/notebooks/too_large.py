"""malformed, too-large: thirty megabytes of outputs."""

def submission(notebook, folder):
    notebook["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * (30 << 20)}]
    return notebook
