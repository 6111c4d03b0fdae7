"""Makes a released notebook without stubs: it has only what is asked, and the checks.

Cells keep their ids, so that it is handed in and graded as the same problem set.
"""

import ast
import json
import re
from pathlib import Path

from autograder.release.source import stable_json

STUBS = r"Write\s+in\s+the\s+place\s+of\s+`raise NotImplementedError\(\)`\s+and\s+delete\s+that\s+line;"
FREE = "Write what a cell's comments ask for, under them (where later cells name another kernel, put yours);"
LEFT_OUT = r" ?About \d+ lines?[^.]*\.|\s*The kernels? (is|are) a suggestion[^.]*\."


def from_scratch(released: Path) -> bytes:
    """The bytes of the notebook `released`, with stubs replaced by comments that name the functions."""
    notebook = json.loads(released.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code" and about.get("solution") and not about.get("grade"):
            cell["source"] = asked("".join(cell["source"]))
        elif cell["cell_type"] == "markdown":
            told = "".join(cell["source"])
            cell["source"] = re.sub(STUBS, FREE, told)
    return stable_json(notebook)


def asked(stub: str) -> str:
    """The signatures and docstrings of a stub's functions as comments.

    Where functions take a `device` (driver tasks) only those, else all functions of the stub.
    """
    found = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    hosts = [node for node in found if [a.arg for a in node.args.args][:1] == ["device"]]
    parts = []
    for node in hosts or found:
        told = re.sub(LEFT_OUT, "", ast.get_docstring(node) or "").rstrip()
        lines = [
            f"{node.name}({ast.unparse(node.args)})",
            *(f"    {line}".rstrip() for line in told.split("\n")),
        ]
        parts.append("\n".join(f"# {line}".rstrip() for line in lines))
    return "\n#\n".join(parts) + "\n"
