"""4 points: forgets the caches."""

def cost_per_token(card, parameters, number, cache, batch, share):
    reading = (parameters * number) / (share * card["bandwidth"])
    computing = 2 * parameters * batch / (share * card["bf16"])
    tokens = batch / max(reading, computing)
    return tokens, card["price"] / 3600 / tokens * 1e6
