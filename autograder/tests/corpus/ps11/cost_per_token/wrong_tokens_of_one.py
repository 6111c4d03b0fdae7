"""6 points: tokens of one reader, not of the batch."""

def cost_per_token(card, parameters, number, cache, batch, share):
    reading = (parameters * number + batch * cache) / (share * card["bandwidth"])
    computing = 2 * parameters * batch / (share * card["bf16"])
    tokens = 1 / max(reading, computing)
    return tokens, card["price"] / 3600 / tokens * 1e6
