"""A one-block transformer that learns a rhyme letter by letter: the text, a float64 run, sampling."""

import math

import numpy as np

from warplab.models.training_runs import adamw, cross_entropy, gelu, gelu_slope

# Jane Taylor, "The Star", in Rhymes for the Nursery, London 1806; in the public domain. The words, without
# capitals, are those of the University of Toronto's Representative Poetry Online, https://rpo.library.utoronto.ca/poems/star
RHYME = """\
twinkle, twinkle, little star,
how i wonder what you are!
up above the world so high,
like a diamond in the sky.

when the blazing sun is gone,
when he nothing shines upon,
then you show your little light,
twinkle, twinkle, all the night.

then the trav'ller in the dark,
thanks you for your tiny spark,
he could not see which way to go,
if you did not twinkle so.

in the dark blue sky you keep,
and often thro' my curtains peep,
for you never shut your eye,
till the sun is in the sky.

'tis your bright and tiny spark,
lights the trav'ller in the dark:
tho' i know not what you are,
twinkle, twinkle, little star.

"""
LETTERS = sorted(set(RHYME))
TEXT_WEIGHTS = ("table", "places", "wq", "wk", "wv", "gain", "shift", "w1", "b1", "w2", "b2", "wo", "bo")
STRIDE = 37  # letters between the beginnings of two steps' batches
NORM = 1e-5  # epsilon of layer norm


def tokens_of(text):
    """A text's letters as numbers, int32."""
    return np.array([LETTERS.index(letter) for letter in text], np.int32)


def text_start(rng, letters, length, width, hidden):
    """{name: initial weights, float32}."""
    shapes = {"table": (letters, width), "places": (length, width)}
    shapes |= dict.fromkeys(("wq", "wk", "wv"), (width, width))
    shapes |= {"gain": (width,), "shift": (width,), "w1": (width, hidden), "b1": (hidden,)}
    shapes |= {"w2": (hidden, width), "b2": (width,), "wo": (width, letters), "bo": (letters,)}
    sizes = {"table": 0.5, "places": 0.5} | {
        name: 0.1 if len(shape) == 1 else shape[0] ** -0.5 for name, shape in list(shapes.items())[2:]
    }
    drawn = {name: sizes[name] * rng.normal(size=shape) for name, shape in shapes.items()}
    drawn["gain"] += 1
    return {name: value.astype(np.float32) for name, value in drawn.items()}


def forward(tokens, length, w):
    """The forward pass over whole sequences of `length`: {name: array with a row for each letter}."""
    width = w["table"].shape[1]
    x = w["table"][tokens] + np.tile(w["places"], (len(tokens) // length, 1))
    q, k, v = ((x @ w[name]).reshape(-1, length, width) for name in ("wq", "wk", "wv"))
    scores = np.where(np.tri(length, dtype=bool), q @ k.swapaxes(1, 2) / math.sqrt(width), -np.inf)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    shares = powers / powers.sum(axis=2, keepdims=True)
    y = x + (shares @ v).reshape(x.shape)
    scale = 1 / np.sqrt(y.var(axis=1, keepdims=True) + NORM)
    hats = (y - y.mean(axis=1, keepdims=True)) * scale
    normed = hats * w["gain"] + w["shift"]
    before = normed @ w["w1"] + w["b1"]
    active = gelu(before)
    z = y + active @ w["w2"] + w["b2"]
    own = {"x": x, "q": q, "k": k, "v": v, "shares": shares, "scale": scale, "hats": hats, "normed": normed}
    return own | {"before": before, "active": active, "z": z, "logits": z @ w["wo"] + w["bo"]}


def text_gradients(tokens, labels, length, w):
    """(mean loss, {weight: gradient}) over whole sequences of `length`."""
    at, g = forward(tokens, length, w), {}
    width = w["table"].shape[1]
    loss, by_logits = cross_entropy(at["logits"], labels)
    g["wo"], g["bo"] = at["z"].T @ by_logits, by_logits.sum(0)
    by_z = by_logits @ w["wo"].T
    g["w2"], g["b2"] = at["active"].T @ by_z, by_z.sum(0)
    by_before = by_z @ w["w2"].T * gelu_slope(at["before"])
    g["w1"], g["b1"] = at["normed"].T @ by_before, by_before.sum(0)
    by_normed = by_before @ w["w1"].T
    g["gain"], g["shift"] = (by_normed * at["hats"]).sum(0), by_normed.sum(0)
    by_hats = by_normed * w["gain"]
    with_hats = (by_hats * at["hats"]).mean(axis=1, keepdims=True)
    by_y = by_z + at["scale"] * (by_hats - by_hats.mean(axis=1, keepdims=True) - at["hats"] * with_hats)
    by_out, by_v = (
        by_y.reshape(-1, length, width),
        at["shares"].swapaxes(1, 2) @ by_y.reshape(-1, length, width),
    )
    by_shares = by_out @ at["v"].swapaxes(1, 2)
    inner = (by_shares * at["shares"]).sum(axis=2, keepdims=True)
    by_scores = at["shares"] * (by_shares - inner) / math.sqrt(width)
    by_q, by_k = by_scores @ at["k"], by_scores.swapaxes(1, 2) @ at["q"]
    by_x = by_y.copy()
    for name, by in (("wq", by_q), ("wk", by_k), ("wv", by_v)):
        flat = by.reshape(by_x.shape)
        g[name] = at["x"].T @ flat
        by_x += flat @ w[name].T
    g["places"] = by_x.reshape(-1, length, width).sum(0)
    g["table"] = np.zeros_like(w["table"])
    np.add.at(g["table"], tokens, by_x)
    return loss, g


def text_run(inputs):
    """Train with AdamW in float64; returns {"losses": one for each step, weight name: its final value}.

    inputs: tokens, length, sequences, steps, rate, beta1, beta2, eps, decay, and the initial weights.
    """
    w = {name: inputs[name].astype(np.float64) for name in TEXT_WEIGHTS}
    moments = [(np.zeros_like(w[name]), np.zeros_like(w[name])) for name in TEXT_WEIGHTS]
    hyper = [inputs[name] for name in ("rate", "beta1", "beta2", "eps", "decay")]
    tokens, rows = inputs["tokens"], inputs["sequences"] * inputs["length"]
    losses = np.empty(inputs["steps"])
    for step in range(inputs["steps"]):
        first = step * STRIDE % (len(tokens) - rows)
        letters, following = tokens[first : first + rows], tokens[first + 1 : first + rows + 1]
        losses[step], g = text_gradients(letters, following, inputs["length"], w)
        adamw([w[name] for name in TEXT_WEIGHTS], [g[name] for name in TEXT_WEIGHTS], moments, step, *hyper)
    return {"losses": losses} | w


def write(w, begin, count, rng, sharpness=1.5):
    """`begin` continued by `count` letters, each sampled from the network's prediction.

    w: the weights, of any float dtype. sharpness: factor of the logits before sampling.
    """
    w, text = {name: np.asarray(value, np.float64) for name, value in w.items()}, begin
    length = len(w["places"])
    for _ in range(count):
        seen = text[-length:]
        padded = np.pad(tokens_of(seen), (0, length - len(seen)))
        logits = sharpness * forward(padded, length, w)["logits"][len(seen) - 1]
        chances = np.exp(logits - logits.max())
        text += LETTERS[rng.choice(len(LETTERS), p=chances / chances.sum())]
    return text
