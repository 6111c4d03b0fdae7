"""0 points: the same answer for every launch."""


def find_the_limit(counts, device):
    return 2, 2, 1.46
