"""10 points: means of each rank, weighted by its share of the step's rows, and a barrier's worth of care for none."""

import torch
import torch.distributed as dist


def hung_run(w, x, y, batch, lr):
    mine = [len(part) for part in y.split(batch)] if len(y) else []
    most = torch.tensor(len(mine))
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    counts = torch.zeros(int(most), dtype=torch.float64)
    counts[: len(mine)] = torch.tensor(mine, dtype=torch.float64)
    shares = counts.clone()
    if len(shares):
        dist.all_reduce(shares)
    report = []
    for step, (count, all_rows) in enumerate(zip(counts, shares, strict=True)):
        mean = torch.zeros(len(w) + 1, dtype=torch.float64)
        if count:
            rows = slice(step * batch, (step + 1) * batch)
            wrong = torch.mv(x[rows], w) - y[rows]
            mean[:-1], mean[-1] = 2 * (wrong[:, None] * x[rows]).mean(0), wrong.square().mean()
        mean *= count / all_rows
        dist.all_reduce(mean)
        w = w - lr * mean[:-1]
        report.append(float(mean[-1]))
    return w, report if dist.get_rank() == 0 else []
