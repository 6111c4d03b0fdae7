"""30 points: numpy.py, torch.py, conftest.py and nbgrader_config.py handed in as well."""

def submission(notebook, folder):
    for name in ("numpy.py", "torch.py", "warplab.py", "conftest.py", "sitecustomize.py", "nbgrader_config.py", "usercustomize.py"):
        (folder / name).write_text("raise SystemExit('mine')")
    return notebook
