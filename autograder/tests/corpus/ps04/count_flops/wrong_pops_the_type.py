"""0 points: takes the layers apart while counting."""


def count_flops(layers, batch):
    flops = []
    for layer in layers:
        kind = layer.pop("type")
        if kind == "linear":
            flops.append(2 * batch * layer["tokens"] * layer["in"] * layer["out"])
        elif kind == "conv2d":
            rows, cols = (
                (layer[side] + 2 * layer["padding"] - layer["kernel"]) // layer["stride"] + 1
                for side in ("height", "width")
            )
            flops.append(2 * batch * rows * cols * layer["out"] * layer["in"] * layer["kernel"] ** 2)
        elif kind == "attention":
            flops.append(4 * batch * layer["tokens"] ** 2 * layer["width"])
        else:
            flops.append(0)
    return flops
