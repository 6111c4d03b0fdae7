"""16 points: takes the price of an hour for that of a second."""

def cost_per_token(card, parameters, number, cache, batch, share):
    reading = (parameters * number + batch * cache) / (share * card["bandwidth"])
    computing = 2 * parameters * batch / (share * card["bf16"])
    tokens = batch / max(reading, computing)
    return tokens, card["price"] / tokens * 1e6
