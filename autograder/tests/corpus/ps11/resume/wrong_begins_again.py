"""5 points: always begins at the beginning."""

from warplab.models.miniature import flat, fresh, one_step


def resume(saves, steps):
    state, losses = fresh(), []
    while state["step"] < steps:
        state, loss = one_step(state)
        losses.append(loss)
    return 0, losses, state["w"], flat(state)
