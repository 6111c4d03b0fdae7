"""12 points: asks only for the changes that can lower the level that binds."""

HELPS = {0: (), 1: (1,), 2: (2, 3), 3: (4,), 4: (4,)}


def times(device, blocks, fp32, fp64, in_shared, in_global, fetched, written):
    share = min(1.0, blocks / device["sms"])
    return (
        fp32 / (share * device["fp32"]),
        fp64 / (share * device["fp64"]),
        128 * (in_shared + in_global) / (share * device["l1"]),
        (fetched + written) / device["l2"],
        fetched / device["hbm"],
    )


def find_the_limit(counts, device):
    c = counts
    work = [c["fp32"], c["fp64"], c["wavefronts"], c["global_wavefronts"], c["fetched"], c["written"]]
    before = times(device, c["blocks"], *work)
    binds = before.index(max(before))
    options = {0: work}
    for change in HELPS[binds]:
        fp32, fp64, in_shared, in_global, fetched, written = work
        if change == 1:
            fp32, fp64 = fp32 + fp64, 0
        if change == 2:
            in_shared -= c["conflicts"]
        if change == 3:
            in_global = c["requests"]
        if change == 4:
            fetched, written = fetched / 2, written / 2
        options[change] = [fp32, fp64, in_shared, in_global, fetched, written]
    after = {change: max(times(device, c["blocks"], *made)) for change, made in options.items()}
    change = min(after, key=after.get)
    return binds, change, max(before) / after[change]
