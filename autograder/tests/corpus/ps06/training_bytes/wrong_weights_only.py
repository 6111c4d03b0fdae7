"""14 points: 12 w squared a block, without biases, norms and positions: some per cent, so the state is right."""

def training_bytes(model, recipe, batch, tokens):
    width = model["width"]
    parameters = 2 * model["vocabulary"] * width
    parameters += model["layers"] * (12 * width**2)
    moments = {"sgd": 0, "momentum": 4, "adam": 8}[recipe["optimizer"]]
    state = parameters * (8 + moments)  # 4 + 4, or 2 + 2 + 4: eight either way
    number = 4 if recipe["precision"] == "fp32" else 2
    return parameters, state, 16 * model["layers"] * batch * tokens * width * number
