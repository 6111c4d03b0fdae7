"""What lies in the device's memory during a training step, part by part, as torch's allocator counts it."""

import functools

import torch

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.models import vram
from warplab.models.networks import Transformer

SHAPE = {
    "vocabulary": 1024,
    "width": 768,
    "heads": 12,
    "layers": 12,
    "context": 256,
}  # 87 million parameters, in FP32
PARTS = ("weights", "activations", "gradients", "optimiser", "workspace", "peak")


def held(where, batch, allocated, peak, forget):
    """Bytes of each part of a step of Adam in FP32: what the allocator holds after a
    phase and did not hold before it.

    allocated, peak: () -> bytes now and at most. forget: gives back the workspaces of the
    library of products, which are then counted as what is left when everything else is gone.
    """
    forget()
    start = allocated()
    with torch.device(where):
        model = Transformer(**SHAPE)
    adam, rows = (
        torch.optim.Adam(model.parameters()),
        torch.randint(SHAPE["vocabulary"], (batch, SHAPE["context"] + 1), device=where),
    )
    marks = {"weights": allocated()}
    with torch.enable_grad():
        model.loss(rows[:1, :2])  # brings the workspace, and keeps nothing else
        workspace = allocated() - marks["weights"]
        loss = model.loss(rows)
        marks["activations"] = allocated() - workspace
        loss.backward()
    del loss
    after = allocated() - workspace
    adam.step()
    optimiser = allocated() - workspace - after
    sizes = {
        "weights": marks["weights"] - start,
        "activations": marks["activations"] - marks["weights"],
        "gradients": after - marks["weights"],
    }
    return sizes | {"optimiser": optimiser, "workspace": workspace, "peak": peak() - start}


def predicted(batch):
    """The same from arithmetic (warplab.models.vram), for the parts that have a formula."""
    with torch.device("meta"):
        count = sum(p.numel() for p in Transformer(**SHAPE).parameters())
    state = vram.training_bytes(count, "FP32, Adam")
    kept = vram.activation_bytes(
        SHAPE["layers"], SHAPE["width"], SHAPE["heads"], SHAPE["context"], batch, number=4
    )
    return {
        "weights": state["weights"],
        "activations": kept,
        "gradients": state["gradients"],
        "optimiser": state["first moment"] + state["second moment"],
    }


def _measured(where, batch, part):
    def clear():
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.reset_peak_memory_stats()

    return held(where, batch, torch.cuda.memory_allocated, torch.cuda.max_memory_allocated, clear)[part]


@experiment(
    question="What lies in memory during a training step?", chapter="06-fit", x="sequences in the batch"
)
def memory_by_part(where):
    for batch in (1, 4, 16):
        for part in PARTS:
            yield Workload(
                part,
                batch,
                functools.partial(_measured, where, batch, part),
                "none",
                unit="B",
                roof="capacity",
            )
