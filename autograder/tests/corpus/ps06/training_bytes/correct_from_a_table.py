"""20 points: bytes of a parameter from a table of recipes."""

BYTES = {
    ("fp32", "sgd"): 4 + 4,
    ("fp32", "momentum"): 4 + 4 + 4,
    ("fp32", "adam"): 4 + 4 + 4 + 4,
    ("mixed", "sgd"): 2 + 2 + 4,
    ("mixed", "momentum"): 2 + 2 + 4 + 4,
    ("mixed", "adam"): 2 + 2 + 4 + 4 + 4,
}


def training_bytes(model, recipe, batch, tokens):
    w, words = model["width"], model["vocabulary"]
    block = 3 * (w + 1) * w + (w + 1) * w + (w + 1) * 4 * w + (4 * w + 1) * w + 4 * w
    parameters = sum([words * w, model["context"] * w, 2 * w, words * w], model["layers"] * block)
    array = batch * tokens * w * {"fp32": 4, "mixed": 2}[recipe["precision"]]
    activations = sum(16 * array for _ in range(model["layers"]))
    return parameters, parameters * BYTES[recipe["precision"], recipe["optimizer"]], activations
