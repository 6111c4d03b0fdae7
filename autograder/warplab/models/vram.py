"""Memory of training and inference in bytes: derived by formulas, and counted for a real forward pass.

    vram.training_bytes(7e9, "mixed, Adam")              # {"weights": 14e9, ...}: 112e9 in all
    vram.activation_bytes(32, 4096, 32, tokens=2048)     # 8.6e9, which 32 blocks keep for the backward pass
    vram.kv_cache_bytes(32, 4096, tokens=2048)           # 1.07e9
    with vram.saving(model) as kept:                     # any torch model, on any device
        loss = model(x).sum()
    kept.bytes

Sizes are in bytes; `number` is the bytes of one number (4 for FP32, 2 for BF16 and FP16).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field

#: Bytes a parameter of the state that training keeps, by recipe. "mixed, Adam" is the 2 + 2 + 12 of ZeRO
#: (Rajbhandari et al. 2020, section 3.1); "8-bit" keeps each moment in a byte (Dettmers et al. 2022), without
#: its scales.
RECIPES: dict[str, dict[str, float]] = {
    "FP32, Adam": {"weights": 4, "gradients": 4, "first moment": 4, "second moment": 4},
    "mixed, Adam": {"weights": 2, "gradients": 2, "FP32 weights": 4, "first moment": 4, "second moment": 4},
    "mixed, SGD with momentum": {"weights": 2, "gradients": 2, "FP32 weights": 4, "first moment": 4},
    "mixed, 8-bit Adam": {
        "weights": 2,
        "gradients": 2,
        "FP32 weights": 4,
        "first moment": 1,
        "second moment": 1,
    },
    "BF16 throughout, Adam": {"weights": 2, "gradients": 2, "first moment": 2, "second moment": 2},
}


def training_bytes(parameters: float, recipe: str = "mixed, Adam") -> dict[str, float]:
    """Bytes of each part of the state that training keeps, without activations. Raises KeyError, which lists
    the recipes.
    """
    if recipe not in RECIPES:
        raise KeyError(f"no recipe '{recipe}'; there are {', '.join(RECIPES)}")
    return {part: parameters * each for part, each in RECIPES[recipe].items()}


def zero_bytes(parameters: float, ranks: int, stage: int, recipe: str = "mixed, Adam") -> dict[str, float]:
    """Bytes of each part of the state on each of `ranks` GPUs with ZeRO (Rajbhandari et al. 2020, section 5).

    Stage 0 keeps a full copy on every GPU, 1 shards the optimizer's state, 2 also the gradients, 3 also the
    weights. Raises ValueError for another stage.
    """
    if stage not in range(4):
        raise ValueError(f"ZeRO has stages 0 to 3, not {stage}")
    kept_whole = ("weights", "gradients")[: 3 - stage] if stage else RECIPES.get(recipe, ())
    return {
        part: size / (1 if part in kept_whole else ranks)
        for part, size in training_bytes(parameters, recipe).items()
    }


def adapter_bytes(parameters: float, adapters: float, number: float) -> dict[str, float]:
    """Bytes of training adapters with frozen weights of `number` bytes each (0.5 for 4 bits, without the
    scales of quantisation).

    The `adapters` trainable parameters are trained with mixed-precision Adam (LoRA, Hu et al. 2021; QLoRA,
    Dettmers et al. 2023).
    """
    return {"frozen weights": parameters * number, "adapters": sum(training_bytes(adapters).values())}


def activation_bytes(
    layers: int,
    width: int,
    heads: int,
    tokens: int,
    batch: int = 1,
    *,
    number: float = 2,
    fused: bool = True,
    dropout: bool = False,
    segments: int | None = None,
) -> float:
    """The peak of bytes that `layers` transformer blocks (models.Block) keep for the backward pass.

    A block keeps 16 arrays of batch x tokens x width: its input, both norms' outputs, queries, keys, values,
    the mixed values, the first sum, and four each before and after GELU. `fused=False` also keeps attention's
    heads x tokens x tokens weights. Dropout adds masks of a byte a number. In 16 bits, unfused and with
    dropout, that is sbh(34 + 5as/h), equation 2 of Korthikanti et al. 2022. Not included, below 2 % for
    widths from 256 on: statistics of the norms and of softmax, and a mask shared by all heads.

    segments: the number of checkpointed segments; their inputs are kept, and one segment at a time is
    recomputed. Raises ValueError if it is not 1 to `layers`.
    """
    rows, scores = batch * tokens * width, batch * heads * tokens**2
    block = rows * (16 * number + 2 * dropout) + (0 if fused else scores * (number + dropout * (1 + number)))
    if segments is None:
        return layers * block
    if not 1 <= segments <= layers:
        raise ValueError(f"{segments} segments of {layers} layers: ask for 1 to {layers}")
    return segments * rows * number + -(-layers // segments) * block


def kv_cache_bytes(
    layers: int, width: int, tokens: int, batch: int = 1, *, number: float = 2, groups: int = 1
) -> float:
    """Bytes of the keys and values of `tokens` tokens in each of `batch` sequences: two arrays a layer.

    groups: query heads that share one head of keys and values (1: multi-head attention; Ainslie et al. 2023).
    """
    return 2 * layers * batch * tokens * width * number / groups


@dataclass
class Kept:
    """Tensors that autograd saved, one for each storage: `tensors` has (shape when first saved, dtype, bytes)
    in order.
    """

    tensors: list = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(size for _, _, size in self.tensors)


@contextmanager
def saving(model=None):
    """Count the tensors that autograd saves inside the `with`: yields a Kept. Each storage counts once, the
    model's own weights not at all.

    Inputs count, since they must stay for the backward pass; of an input that is a view of a larger tensor
    only the view counts, since the rest is not kept by autograd. A saved view of a result keeps, and counts,
    the whole result. Tensors that a checkpointed segment recomputes are not saved, and do not count.
    """
    import torch

    weights, kept = (
        {p.untyped_storage().data_ptr() for p in (model.parameters() if model is not None else ())},
        Kept(),
    )
    # address -> (first byte, end, index in kept.tensors, the storage, kept so that its address is not reused)
    held: dict = {}

    def note(tensor):
        storage, (first, end) = tensor.untyped_storage(), _kept_of_storage(tensor)
        address, shape, dtype = storage.data_ptr(), tuple(tensor.shape), tensor.dtype
        if address in weights:
            return tensor
        if address in held:
            low, high, place, _ = held[address]
            first, end, (shape, dtype, _) = min(first, low), max(end, high), kept.tensors[place]
        else:
            place = len(kept.tensors)
        held[address] = first, end, place, storage
        kept.tensors[place : place + 1] = [(shape, dtype, end - first)]
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        yield kept


def _kept_of_storage(tensor):
    """(first byte, end) of the part of the tensor's storage that saving the tensor keeps."""
    if tensor._base is None or not tensor._base.is_leaf:
        return 0, tensor.untyped_storage().nbytes()
    first, item = tensor.storage_offset() * tensor.element_size(), tensor.element_size()
    reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return first, first + item * reach * (tensor.numel() > 0)
