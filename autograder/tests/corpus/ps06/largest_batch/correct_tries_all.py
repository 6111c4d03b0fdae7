"""15 points: counts up until it no longer fits."""


def training_bytes(model, recipe, batch, tokens):
    width = model["width"]
    parameters = (2 * model["vocabulary"] + model["context"]) * width + 2 * width
    parameters += model["layers"] * (12 * width**2 + 13 * width)
    moments = {"sgd": 0, "momentum": 4, "adam": 8}[recipe["optimizer"]]
    state = parameters * (8 + moments)  # 4 + 4, or 2 + 2 + 4: eight either way
    number = 4 if recipe["precision"] == "fp32" else 2
    return parameters, state, 16 * model["layers"] * batch * tokens * width * number


def largest_batch(model, recipe, tokens, card, checkpoint):
    _, state, _ = training_bytes(model, recipe, 1, tokens)
    number = 4 if recipe["precision"] == "fp32" else 2
    array = tokens * model["width"] * number
    one = array * (16 + model["layers"]) if checkpoint else array * 16 * model["layers"]
    batch = 0
    while state + (batch + 1) * one <= card:
        batch += 1
    return batch
