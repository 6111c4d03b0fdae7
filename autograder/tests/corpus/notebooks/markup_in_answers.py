"""30 points: scripts and pictures from elsewhere in text, code and names."""

def submission(notebook, folder):
    bad = "<script src='http://evil.example/x.js'></script><img src='http://evil.example/x.png' onerror='alert(1)'>"
    for one in notebook["cells"]:
        if one["id"] == "explain":
            one["source"] = bad + "{{ config }}{% raw %}"
        if one["id"] == "time_it":
            one["source"] += f"\n# {bad}"
    return notebook
