"""20 points: dollars for a step, divided by its tokens."""


def cost_per_token(card, parameters, number, cache, batch, share):
    step = (
        max((parameters * number + batch * cache) / card["bandwidth"], 2 * parameters * batch / card["bf16"])
        / share
    )
    return batch / step, 1e6 * card["price"] * step / 3600 / batch
