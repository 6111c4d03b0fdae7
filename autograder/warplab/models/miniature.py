"""A tiny training run for exercises on saving and resuming, in plain Python numbers: the same bits on every
machine.
"""

RATE, MOMENTUM, WARM_UP = 0.05, 0.9, 10


def fresh():
    """The state of a run that has not begun, which is all that must be saved."""
    return {"step": 0, "w": [0.0, 0.0, 0.0], "m": [0.0, 0.0, 0.0], "rng": 20_261_121}


def one_step(state):
    """One step of training a linear model: returns (new state, loss).

    The data come from a random number generator with the state `rng` (Knuth's 64-bit linear congruential
    one), the learning rate warms up over the first steps, and the optimiser has a momentum `m`.
    """
    rng, row = state["rng"], []
    for _ in range(4):
        rng = (6364136223846793005 * rng + 1442695040888963407) % 2**64
        row.append((rng >> 40) / 2**23 - 1.0)
    *x, noise = row
    error = sum(w * value for w, value in zip(state["w"], x, strict=True)) - (
        2 * x[0] - x[1] + 0.5 * x[2] + 0.1 * noise
    )
    rate = RATE * min(1.0, (state["step"] + 1) / WARM_UP)
    m = [MOMENTUM * old + 2 * error * value for old, value in zip(state["m"], x, strict=True)]
    w = [old - rate * moved for old, moved in zip(state["w"], m, strict=True)]
    return {"step": state["step"] + 1, "w": w, "m": m, "rng": rng}, error * error


def flat(state):
    """Step, momentum and the two halves of rng: six numbers that a float holds exactly."""
    return [float(state["step"]), *state["m"], float(state["rng"] >> 32), float(state["rng"] % 2**32)]
