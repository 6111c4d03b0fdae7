"""What a forward pass computes: the FLOP of its products, and the numbers that everything else writes.

operations(model, x)         # {"dense layers": 1_234, "attention": 567, "everything else": 89}
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

KINDS = {"addmm": "dense layers", "bmm": "attention", "convolution": "convolutions"}


class NumbersWritten(TorchDispatchMode):
    """Adds up the numbers that operators write which PyTorch's FLOP counter does not know: softmax,
    GELU, norms, copies. A view writes nothing.
    """

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        out = op(*args, **(kwargs or {}))
        if op.overloadpacket not in flop_registry and not op.is_view:
            self.numbers += sum(tensor.numel() for tensor in (out if isinstance(out, tuple) else (out,)))
        return out


def operations(model, x):
    """{kind of product: FLOP, ..., "everything else": one for each number written} of one forward pass.

    Products are counted by PyTorch, a multiply-add as two; on a CPU it does not see fused attention.
    """
    with torch.no_grad(), FlopCounterMode(display=False) as products:
        model(x)
    with torch.no_grad(), NumbersWritten() as rest:
        model(x)
    flops = products.get_flop_counts().get("Global", {})
    work = {KINDS.get(op.__name__, op.__name__): flop for op, flop in flops.items()}
    return work | {"everything else": rest.numbers}
