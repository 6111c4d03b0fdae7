"""Records what a network trained by set 13's reference kernels writes as it learns, for chapter 13."""

from datetime import UTC, datetime

import yaml

from autograder.results import write_atomic
from warplab.figures import train_it_runs
from workshop.mutants.notebook_cells import cells_for, run_cells

# more steps would allocate more arrays than the engine allows
RUN = {"steps": 60, "seed": 0, "sequences": 16, "width": 64, "hidden": 128}


def write_record(root):
    """Train on the SIMT engine and write the record. Returns its path."""
    source = root / "solutions" / "ps13_train_it.py"
    train_text = run_cells(cells_for(source, "train_text"), source)["train_text"]
    run = train_it_runs.watch_text(train_text, **RUN, every=10, letters=90)
    last = {
        "steps": RUN["steps"],
        "loss": float(run.losses[-1]),
        "text": train_it_runs.sample(run.weights, 90),
    }
    record = {
        "made": f"{datetime.now(UTC):%Y-%m-%d}, by python -m workshop writing: the reference's train_text of "
        "problem set 13, on the SIMT engine",
        "run": RUN,
        "parameters": sum(weight.size for weight in run.weights.values()),
        "written": [*run.written, last],
    }
    text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=110)
    write_atomic(train_it_runs.WRITING, text.encode())
    return train_it_runs.WRITING
