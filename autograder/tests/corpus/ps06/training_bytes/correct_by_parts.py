"""20 points: adds up every tensor of the model."""


def training_bytes(model, recipe, batch, tokens):
    w = model["width"]
    block = [3 * w * w, 3 * w, w * w, w, 4 * w * w, 4 * w, 4 * w * w, w, w, w, w, w]
    parameters = model["layers"] * sum(block) + model["vocabulary"] * w * 2 + model["context"] * w + w + w
    mixed = recipe["precision"] == "mixed"
    each = (2 + 2 + 4 if mixed else 4 + 4) + {"sgd": 0, "momentum": 4, "adam": 8}[recipe["optimizer"]]
    kept = model["layers"] * 16 * batch * tokens * w * (2 if mixed else 4)
    return parameters, parameters * each, kept
