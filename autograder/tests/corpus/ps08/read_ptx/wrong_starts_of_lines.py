"""3 points: looks at the beginnings of lines: predicates and longer names are missed, only the spills are found."""


def read_ptx(ptx):
    lines = [line.strip() for line in ptx.splitlines()]
    loads = sum(line.startswith("ld.global") for line in lines)
    local = sum(".local" in line for line in lines)
    pairs = zip(lines, lines[1:])
    missed = sum(
        a.startswith("mul.f32") and b.startswith("add.f32") and a.split()[1].strip(",") in b for a, b in pairs
    )
    return loads, local, missed
