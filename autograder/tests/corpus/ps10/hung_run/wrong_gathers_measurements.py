"""8 points: every rank gets all measurements and does the whole work."""

import torch
import torch.distributed as dist


def hung_run(w, x, y, batch, lr):
    n, width = dist.get_world_size(), len(w)
    counts = torch.zeros(n, dtype=torch.int64)
    dist.all_gather_single(counts, torch.tensor([len(y)]))
    most, errors = int(counts.max()), []
    if most == 0:
        return w, errors
    padded = torch.zeros(most, width + 1, dtype=torch.float64)
    padded[: len(y), :width], padded[: len(y), width] = x, y
    gathered = torch.zeros(n * most * (width + 1), dtype=torch.float64)
    dist.all_gather_single(gathered, padded.reshape(-1))
    table = gathered.reshape(n, most, width + 1)
    for first in range(0, most, batch):
        step = torch.cat([table[r, first : min(first + batch, int(counts[r]))] for r in range(n)])
        wrong = step[:, :width] @ w - step[:, width]
        errors.append(float((wrong**2).mean()))
        w = w - lr * 2 * step[:, :width].T @ wrong / len(wrong)
    return w, errors if dist.get_rank() == 0 else []
