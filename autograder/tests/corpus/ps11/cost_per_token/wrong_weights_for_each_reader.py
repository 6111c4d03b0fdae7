"""6 points: reads the weights once for every reader."""

def cost_per_token(card, parameters, number, cache, batch, share):
    reading = batch * (parameters * number + cache) / (share * card["bandwidth"])
    computing = 2 * parameters * batch / (share * card["bf16"])
    tokens = batch / max(reading, computing)
    return tokens, card["price"] / 3600 / tokens * 1e6
