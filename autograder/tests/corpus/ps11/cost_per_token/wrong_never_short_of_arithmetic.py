"""3 points: only the door counts."""


def cost_per_token(card, parameters, number, cache, batch, share):
    reading = (parameters * number + batch * cache) / (share * card["bandwidth"])
    tokens = batch / reading
    return tokens, card["price"] / 3600 / tokens * 1e6
