"""malformed, link-outside: a link to another student's notebook."""

def submission(notebook, folder):
    (folder / "ps01_tiny.ipynb").symlink_to("../bystander/ps01_tiny.ipynb")
    return None
