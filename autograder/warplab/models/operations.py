"""The operations of a forward pass: the FLOP of its products, and the numbers that other operators write.

operations(model, x)         # {"dense layers": 1_234, "attention": 567, "everything else": 89}
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

KINDS = {"addmm": "dense layers", "bmm": "attention", "convolution": "convolutions"}


class NumbersWritten(TorchDispatchMode):
    """Sums the sizes of the outputs of operators that PyTorch's FLOP counter does not know: softmax, GELU,
    norms, copies. Views are not counted.
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
    """{kind of product: FLOP, ..., "everything else": numbers written} of one forward pass.

    PyTorch counts the products, a multiply-add as two; on a CPU it does not count fused attention.
    """
    with torch.no_grad(), FlopCounterMode(display=False) as products:
        model(x)
    with torch.no_grad(), NumbersWritten() as rest:
        model(x)
    flops = products.get_flop_counts().get("Global", {})
    work = {KINDS.get(op.__name__, op.__name__): flop for op, flop in flops.items()}
    return work | {"everything else": rest.numbers}
