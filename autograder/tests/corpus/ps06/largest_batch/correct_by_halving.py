"""15 points: looks for the last number of sequences that fit by halving, and counts parameters itself."""

MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2}


def needed(model, recipe, tokens, checkpoint, sequences):
    w, layers = model["width"], model["layers"]
    parameters = w * (2 * model["vocabulary"] + model["context"] + 2) + layers * w * (12 * w + 13)
    arrays = layers + 16 if checkpoint else 16 * layers
    number = 4 if recipe["precision"] == "fp32" else 2
    return (8 + 4 * MOMENTS[recipe["optimizer"]]) * parameters + sequences * arrays * tokens * w * number


def largest_batch(model, recipe, tokens, card, checkpoint):
    fits, too_many = 0, 1 << 40
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if needed(model, recipe, tokens, checkpoint, middle) <= card:
            fits = middle
        else:
            too_many = middle
    return fits
