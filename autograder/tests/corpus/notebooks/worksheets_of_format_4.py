"""malformed, not-notebook: format 3's worksheets under format 4's number, so that there are no cells."""

def submission(document, folder):
    return {"worksheets": [], "nbformat": 4}
