"""5 points: makes `steps` more steps instead of going on to that one."""

import json

from warplab.miniature import flat, fresh, one_step


def resume(saves, steps):
    state = fresh()
    for text in reversed(saves):
        try:
            state = json.loads(text)
            break
        except ValueError:
            continue
    begun, losses = state["step"], []
    while state["step"] < begun + steps:
        state, loss = one_step(state)
        losses.append(loss)
    return begun, losses, state["w"], flat(state)
