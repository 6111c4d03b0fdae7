"""11 points: splits at the semicolons."""

import re


def read_ptx(ptx):
    code = re.sub(r"//[^\n]*", "", ptx)
    found = re.findall(r"(?:@!?%\w+\s+)?([a-z][\w.]*)\s+([^;\n]*);|^\s*(\$?\w+):", code, re.M)
    loads = sum(name.startswith("ld.global") for name, _, _ in found)
    local = sum(name.startswith(("ld.local", "st.local")) for name, _, _ in found)
    missed = 0
    for (first, a, _), (second, b, _) in zip(found, found[1:]):
        if (
            first.startswith("mul.")
            and first.endswith("f32")
            and second.startswith("add.")
            and second.endswith("f32")
        ):
            missed += a.split(",")[0].strip() in [part.strip() for part in b.split(",")[1:]]
    return loads, local, missed
