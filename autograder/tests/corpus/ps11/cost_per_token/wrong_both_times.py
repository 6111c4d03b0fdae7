"""0 points: adds the two times up, though reading and arithmetic go on together."""

def cost_per_token(card, parameters, number, cache, batch, share):
    reading = (parameters * number + batch * cache) / (share * card["bandwidth"])
    computing = 2 * parameters * batch / (share * card["bf16"])
    tokens = batch / (reading + computing)
    return tokens, card["price"] / 3600 / tokens * 1e6
