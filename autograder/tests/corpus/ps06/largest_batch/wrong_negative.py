"""11 points: a negative number of sequences."""

def training_bytes(model, recipe, batch, tokens):
    width = model["width"]
    parameters = (2 * model["vocabulary"] + model["context"]) * width + 2 * width
    parameters += model["layers"] * (12 * width**2 + 13 * width)
    moments = {"sgd": 0, "momentum": 4, "adam": 8}[recipe["optimizer"]]
    state = parameters * (8 + moments)  # 4 + 4, or 2 + 2 + 4: eight either way
    number = 4 if recipe["precision"] == "fp32" else 2
    return parameters, state, 16 * model["layers"] * batch * tokens * width * number


def largest_batch(model, recipe, tokens, card, checkpoint):
    _, state, one = training_bytes(model, recipe, 1, tokens)
    if checkpoint:
        array = one // (16 * model["layers"])
        one = array * (model["layers"] + 16)
    return (card - state) // one
