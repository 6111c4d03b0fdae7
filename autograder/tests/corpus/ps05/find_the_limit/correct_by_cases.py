"""12 points: names instead of lists, and a case for each change that has something to change."""


def longest(c, device):
    working = min(c["blocks"], device["sms"]) / device["sms"]
    found = {
        0: c["fp32"] / device["fp32"] / working,
        1: c["fp64"] / device["fp64"] / working,
        2: 128 * (c["wavefronts"] + c["global_wavefronts"]) / device["l1"] / working,
        3: (c["fetched"] + c["written"]) / device["l2"],
        4: c["fetched"] / device["hbm"],
    }
    level = max(found, key=found.get)
    return found[level], level


def find_the_limit(counts, device):
    before, binds = longest(counts, device)
    best, change = before, 0
    for number in range(1, 5):
        c = dict(counts)
        if number == 1:
            c["fp32"], c["fp64"] = c["fp32"] + c["fp64"], 0
        elif number == 2:
            c["wavefronts"] -= c["conflicts"]
        elif number == 3:
            c["global_wavefronts"] = c["requests"]
        else:
            c["fetched"], c["written"] = c["fetched"] / 2, c["written"] / 2
        after, _ = longest(c, device)
        if after < best:
            best, change = after, number
    return binds, change, before / best
