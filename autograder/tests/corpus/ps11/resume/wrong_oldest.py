"""5 points: goes on from the oldest save."""

import json

from warplab.miniature import flat, fresh, one_step


def resume(saves, steps):
    state = fresh()
    for text in saves:
        try:
            state = json.loads(text)
            break
        except ValueError:
            continue
    begun, losses = state["step"], []
    while state["step"] < steps:
        state, loss = one_step(state)
        losses.append(loss)
    return begun, losses, state["w"], flat(state)
