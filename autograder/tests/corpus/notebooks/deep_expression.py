"""15 points: expressions so deep that Python's compiler gives up: once by its parser, once by its symbol table."""


def submission(notebook, folder):
    for cell in notebook["cells"]:
        if cell["id"] == "launch_plan":
            cell["source"] = "launch_plan = x" + ".x" * 50_000
    notebook["cells"].append(dict(notebook["cells"][1], id="deeper", metadata={}, source="-" * 150_000 + "1"))
    return notebook
