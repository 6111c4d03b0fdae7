"""Train the course's Transformer on a machine that may be taken away at any moment.

    python spot_train.py STATE --steps 120 --every 40

SIGTERM: finish the step, save, leave with status 143. Any later start with the same STATE continues from the
last save and, on the same kind of processor with the same libraries, goes through the same numbers, bit for
bit. SIGKILL, or a power cut, costs at most --every steps. Each step is a line of the log: "step 17
0x1.2c6e2ap+1", its loss in hexadecimal so that no digit is rounded away.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import torch

from warplab.models import Transformer, worksheet

BATCH = 64


def save(path, state):
    """Write `state` so that `path` is at every moment either the old file or the new one, whole."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())  # on the disk, not only on its way
    part.replace(path)


def main():
    parser = argparse.ArgumentParser(description="Train, save, continue.")
    parser.add_argument("state", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--every", type=int, required=True)
    todo = parser.parse_args()

    asked = []
    signal.signal(
        signal.SIGTERM, lambda number, frame: asked.append(number)
    )  # only a note: a step is never cut in two

    torch.set_num_threads(1)
    torch.manual_seed(11)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = worksheet(10_000, seed=11).to(device)
    model = Transformer(width=32).to(device)
    adam = torch.optim.AdamW(model.parameters(), 5e-3)
    step = 0
    if todo.state.exists():
        state = torch.load(todo.state, weights_only=True)
        model.load_state_dict(state["model"])
        adam.load_state_dict(state["adam"])
        torch.set_rng_state(state["rng"])
        step = state["step"]
    print(f"start {step}", flush=True)

    while step < todo.steps:
        batch = rows[torch.randint(len(rows), (BATCH,)).to(device)]
        loss = model.loss(batch)
        adam.zero_grad()
        loss.backward()
        adam.step()
        step += 1
        print(f"step {step} {loss.item().hex()}", flush=True)
        if asked or step % todo.every == 0 or step == todo.steps:
            save(
                todo.state,
                {
                    "step": step,
                    "model": model.state_dict(),
                    "adam": adam.state_dict(),
                    "rng": torch.get_rng_state(),
                },
            )
            print(f"saved {step}", flush=True)
        if asked:
            sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
