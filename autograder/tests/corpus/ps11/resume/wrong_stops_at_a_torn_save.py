"""13 points: gives up when the newest save is torn."""

import json

from warplab.models.miniature import flat, fresh, one_step


def resume(saves, steps):
    state = json.loads(saves[-1]) if saves else fresh()
    begun, losses = state["step"], []
    while state["step"] < steps:
        state, loss = one_step(state)
        losses.append(loss)
    return begun, losses, state["w"], flat(state)
