"""5 points: a key and a value for every head of queries."""

def kv_cache_bytes(model, batch, tokens, free):
    token = 2 * model["layers"] * model["heads"] * model["head_size"] * model["number"]
    return token * batch * tokens, free // token
