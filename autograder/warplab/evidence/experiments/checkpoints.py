"""What a training step holds on the device. The horizontal axis is the peak that
torch's allocator reports, the time that of a whole step.
"""

import copy

import torch
from torch.utils.checkpoint import checkpoint

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.models.networks import Block, Transformer

SHAPE = {"layers": 16, "width": 1024, "heads": 16}  # 0.2 B parameters
BATCH, TOKENS, VOCABULARY = 8, 512, 1024


def _peak(call, before):
    """GB that the allocator held at most during a call, after one that warms up, beyond
    the bytes that it held `before`.
    """
    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 1e9


def _run(blocks, x):
    for block in blocks:
        x = block(x)[0]
    return x


def _step(blocks, x, segments):
    """Forward and backward of a stack of blocks, checkpointed in `segments` (0: not at all)."""
    with torch.enable_grad():
        blocks.zero_grad()
        size, y = len(blocks) // max(segments, 1), x
        for start in range(0, len(blocks), size):
            part = blocks[start : start + size]
            y = checkpoint(_run, part, y, use_reentrant=False) if segments else _run(part, y)
        y.sum().backward()


@experiment(
    question="What does checkpointing give back, and what does it cost?",
    chapter="06-fit",
    x="peak GB allocated",
)
def checkpointing(where):
    before = torch.cuda.memory_allocated()
    blocks = torch.nn.ModuleList(Block(SHAPE["width"], SHAPE["heads"]) for _ in range(SHAPE["layers"])).to(
        where, torch.bfloat16
    )
    x = torch.randn(BATCH, TOKENS, SHAPE["width"], device=where, dtype=torch.bfloat16, requires_grad=True)
    for segments in (0, 1, 2, 4, 8, 16):
        call = lambda segments=segments: _step(blocks, x, segments)  # noqa: E731
        yield Workload(f"{segments} segments" if segments else "no checkpoints", _peak(call, before), call)


def _fp32(model, rows, autocast=False):
    """A step of Adam with everything in FP32; `autocast`: products and activations in BF16."""
    adam = torch.optim.Adam(model.parameters())

    def step():
        with torch.enable_grad():
            with torch.autocast(rows.device.type, torch.bfloat16, enabled=autocast):
                loss = model.loss(rows)
            loss.backward()
        adam.step()
        adam.zero_grad()

    return step


def _mixed(model, rows):
    """A step with weights and gradients in BF16 and Adam on an FP32 copy; gradients are
    widened a tensor at a time.
    """
    half, wide = copy.deepcopy(model).bfloat16(), list(model.parameters())
    adams = [torch.optim.Adam([big]) for big in wide]

    def step():
        with torch.enable_grad():
            half.loss(rows).backward()
        for big, small, adam in zip(wide, half.parameters(), adams, strict=True):
            big.grad = small.grad.float()
            adam.step()
            small.copy_(big)
            big.grad = small.grad = None

    return step


@experiment(
    question="What does a training step hold in each precision?", chapter="06-fit", x="peak GB allocated"
)
def training_memory(where):
    rows = torch.randint(VOCABULARY, (BATCH, TOKENS + 1), device=where)
    recipes = {
        "FP32, Adam": _fp32,
        "autocast, Adam": lambda model, rows: _fp32(model, rows, autocast=True),
        "mixed, Adam": _mixed,
        "BF16 throughout, Adam": lambda model, rows: _fp32(model.bfloat16(), rows),
    }
    for name, recipe in recipes.items():
        before = torch.cuda.memory_allocated()
        steps = [recipe(Transformer(VOCABULARY, context=TOKENS, **SHAPE).to(where), rows)]
        yield Workload(name, _peak(steps[0], before), lambda steps=steps: steps[0]())
        steps.clear()  # whoever still has the case must not keep the model beside the next one
