"""15 points: computes with floats and makes whole numbers of them."""


def kv_cache_bytes(model, batch, tokens, free):
    per_layer = 2 * model["kv_heads"] * model["head_size"] * model["number"]
    token = per_layer * model["layers"]
    return int(token * batch * tokens), int(free / token)
