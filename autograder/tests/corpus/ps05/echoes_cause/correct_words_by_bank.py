"""2 points: the words of the 32 lanes, sorted into banks."""


def echoes_cause(strengths):
    banks = [set() for _ in range(32)]
    for lane, strength in enumerate(strengths):
        word = 32 * lane + strength
        banks[word % 32].add(word)
    wavefronts = max(map(len, banks))
    return (wavefronts - 1) + (wavefronts - 1)
