"""0 points: does not see what has a predicate in front, and each row has such a line."""

import re


def read_ptx(ptx):
    loads = local = missed = 0
    product = None
    for line in ptx.splitlines():
        text = line.split("//")[0].strip()
        if not text:
            continue
        name, _, rest = text.partition(" ")
        parts, registers = name.split("."), re.findall(r"%\w+", rest)
        loads += parts[:2] == ["ld", "global"]
        local += parts[:2] in (["ld", "local"], ["st", "local"])
        missed += parts[0] == "add" and "f32" in parts and product in registers[1:]
        product = registers[0] if parts[0] == "mul" and "f32" in parts else None
    return loads, local, missed
