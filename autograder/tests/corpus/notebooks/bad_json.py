"""malformed, not-json: half a file."""

import json


def submission(notebook, folder):
    return json.dumps(notebook)[: len(json.dumps(notebook)) // 2]
