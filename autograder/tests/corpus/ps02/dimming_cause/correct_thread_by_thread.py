"""2 points: counts the range of every thread that begins before the last star."""


def dimming_cause(stars, blocks):
    writes = 0
    for thread in range(min(128 * blocks, stars)):
        writes += len(range(thread, stars, 128))
    return writes, writes + writes
