"""malformed, bad-text: a surrogate that no file can hold."""

import json


def submission(notebook, folder):
    notebook["cells"][0]["source"] = "\ud800"
    return json.dumps(notebook)
