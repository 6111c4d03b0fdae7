"""12 points: mixed precision without the FP32 copy of the weights."""

def training_bytes(model, recipe, batch, tokens):
    width = model["width"]
    parameters = (2 * model["vocabulary"] + model["context"]) * width + 2 * width
    parameters += model["layers"] * (12 * width**2 + 13 * width)
    moments = {"sgd": 0, "momentum": 4, "adam": 8}[recipe["optimizer"]]
    state = parameters * ((8 if recipe["precision"] == "fp32" else 4) + moments)
    number = 4 if recipe["precision"] == "fp32" else 2
    return parameters, state, 16 * model["layers"] * batch * tokens * width * number
