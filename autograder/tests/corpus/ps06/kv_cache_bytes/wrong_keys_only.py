"""0 points: forgets the values."""

def kv_cache_bytes(model, batch, tokens, free):
    token = model["layers"] * model["kv_heads"] * model["head_size"] * model["number"]
    return token * batch * tokens, free // token
