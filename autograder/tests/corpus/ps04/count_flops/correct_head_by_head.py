"""11 points: goes through the heads of attention one by one."""


def count_flops(layers, batch):
    flops = []
    for layer in layers:
        if layer["type"] == "linear":
            flops.append(2 * batch * layer["tokens"] * layer["in"] * layer["out"])
        elif layer["type"] == "conv2d":
            rows, cols = (
                (layer[side] + 2 * layer["padding"] - layer["kernel"]) // layer["stride"] + 1
                for side in ("height", "width")
            )
            flops.append(2 * batch * rows * cols * layer["out"] * layer["in"] * layer["kernel"] ** 2)
        elif layer["type"] == "attention":
            flops.append(
                sum(
                    2 * 2 * batch * layer["tokens"] ** 2 * (layer["width"] // layer["heads"])
                    for _ in range(layer["heads"])
                )
            )
        else:
            flops.append(0)
    return flops
