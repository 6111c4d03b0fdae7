"""What an answer costs: the prompt in one pass, then a pass a token, alone and in batches."""

import torch

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.models.networks import Transformer

SHAPE = {
    "cuda": {"width": 8192, "heads": 64, "layers": 4, "context": 4096},
    "cpu": {"width": 512, "heads": 8, "layers": 4, "context": 512},
}


@torch.no_grad()
def _model(where):
    """A decoder in FP16 on CUDA (3.2 billion weights, 6.4 GB: long to read, quick to
    launch), in FP32 on the CPU (12.6 million, 50 MB).
    """
    with torch.device("meta"):
        model = Transformer(**SHAPE[where])
    model = (model.half() if where == "cuda" else model).to_empty(device=where).eval()
    for parameter in model.parameters():
        parameter.normal_(0, 0.02)
    weights = sum(p.numel() for block in model.blocks for p in block.parameters() if p.ndim == 2)
    return model, weights


def _prompts(batch, tokens, where):
    return torch.randint(10, (batch, tokens), device=where)


def _step(model, token, cache):
    """One token for each request; the cache itself is left as it was."""
    return model(token, list(cache))


@experiment(
    question="What does a larger batch cost a decoding step?",
    chapter="09-train-infer",
    x="requests",
    cpu=True,
)
def decode_batch(where):
    """Each request has 16 tokens in its cache: short, so that the weights are what the door carries."""
    model, weights = _model(where)
    clock, roof = ("cuda", "fp16") if where == "cuda" else ("host", "")
    for batch in (1, 4, 16, 64, 128, 256, 512) if where == "cuda" else (1, 2, 4, 8, 16, 32, 64):
        cache = []
        model(_prompts(batch, 16, where), cache)
        token = _prompts(batch, 1, where)
        call = lambda token=token, cache=cache: _step(model, token, cache)  # noqa: E731
        yield Workload(f"{where}: a step", batch, call, clock, flops=2 * weights * batch, roof=roof)


@experiment(
    question="What do a prompt and one token cost?",
    chapter="09-train-infer",
    x="tokens of the prompt",
    cpu=True,
)
def prefill_and_decode(where):
    model, weights = _model(where)
    clock, roof = ("cuda", "fp16") if where == "cuda" else ("host", "")
    for tokens in (64, 256, 1024, 2048) if where == "cuda" else (16, 64, 256):
        cache, prompt, token = [], _prompts(1, tokens, where), _prompts(1, 1, where)
        model(prompt, cache)
        yield Workload(
            f"{where}: prefill",
            tokens,
            lambda p=prompt: model(p),
            clock,
            flops=2 * weights * tokens,
            roof=roof,
        )
        call = lambda token=token, cache=cache: _step(model, token, cache)  # noqa: E731
        yield Workload(f"{where}: decode", tokens, call, clock, flops=2 * weights, roof=roof)
