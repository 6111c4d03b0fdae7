"""15 points: computes with floats and makes whole numbers of them; looks for the longest text by halving."""


def kv_cache_bytes(model, batch, tokens, free):
    each = 2.0 * model["kv_heads"] * model["head_size"] * model["number"]

    def size(length):
        local = model["local"] * min(length, model["window"])
        return each * (local + (model["layers"] - model["local"]) * length)

    low, high = 0, free + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) <= free else (low, middle)
    return int(size(tokens) * batch), low
