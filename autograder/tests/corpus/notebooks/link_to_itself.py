"""malformed, unreadable: a link that leads in a circle."""

def submission(notebook, folder):
    (folder / "ps01_tiny.ipynb").symlink_to("ps01_tiny.ipynb")
    return None
