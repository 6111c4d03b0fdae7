"""What lies on the desk: the formulas are those of their sources, and what PyTorch
really keeps is what they say.
"""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from warplab.models import vram
from warplab.models.networks import Block, Transformer, worksheet


def test_training_seven_billion_parameters_keeps_112_gb_in_fp32_and_in_mixed_precision():
    assert {name: sum(vram.training_bytes(7e9, name).values()) / 1e9 for name in vram.RECIPES} == {
        "FP32, Adam": 112,
        "mixed, Adam": 112,
        "mixed, SGD with momentum": 84,
        "mixed, 8-bit Adam": 70,
        "BF16 throughout, Adam": 56,
    }


def test_an_unknown_recipe_is_refused_with_the_names_of_the_known():
    with pytest.raises(KeyError, match="FP32, Adam"):
        vram.training_bytes(1, "Adam")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "recipe"), [(torch.float32, "FP32, Adam"), (torch.bfloat16, "BF16 throughout, Adam")]
)
def test_pytorch_keeps_what_a_recipe_says(kind, recipe):
    model = Transformer().to(kind)
    adam = torch.optim.Adam(model.parameters())
    model.loss(worksheet(4)).backward()
    adam.step()
    count = sum(p.numel() for p in model.parameters())
    moments = {
        name: sum(kept[key].nbytes for kept in adam.state.values())
        for name, key in (("first moment", "exp_avg"), ("second moment", "exp_avg_sq"))
    }
    kept = {
        "weights": sum(p.nbytes for p in model.parameters()),
        "gradients": sum(p.grad.nbytes for p in model.parameters()),
        **moments,
    }
    assert kept == vram.training_bytes(count, recipe)


def test_adapters_beside_frozen_weights():
    assert vram.adapter_bytes(13e9, 50e6, 0.5) == {"frozen weights": 6.5e9, "adapters": 50e6 * 16}


def test_korthikanti_s_formula_for_16_bits_with_stored_attention_and_dropout():
    s, b, h, a = 2048, 4, 4096, 32
    assert vram.activation_bytes(1, h, a, s, b, fused=False, dropout=True) == s * b * h * (34 + 5 * a * s / h)


@pytest.mark.parametrize(
    ("kind", "batch", "tokens", "width", "heads"),
    [(torch.float32, 4, 128, 256, 8), (torch.bfloat16, 2, 64, 512, 4), (torch.float32, 1, 33, 320, 5)],
)
def test_a_block_keeps_sixteen_arrays_and_the_small_change_that_the_formula_leaves_out(
    kind, batch, tokens, width, heads
):
    block, x = Block(width, heads).to(kind), torch.randn(batch, tokens, width, dtype=kind, requires_grad=True)
    with vram.saving(block) as kept:
        block(x)
    derived = vram.activation_bytes(1, width, heads, tokens, batch, number=kind.itemsize)
    # fused attention keeps no mask
    norms, sums = 4 * batch * tokens * kind.itemsize, 4 * batch * heads * tokens
    assert kept.bytes == derived + norms + sums
    assert kept.bytes < 1.02 * derived


class Stored(nn.Module):
    """The layer of Korthikanti et al.: two plain products for attention, dropout after
    softmax and after both halves.
    """

    def __init__(self, width, heads):
        super().__init__()
        self.block, self.heads = Block(width, heads), heads

    def forward(self, x):
        def drop(t):
            return torch.ops.aten.native_dropout(t, 0.1, True)[
                0
            ]  # what CUDA runs: it keeps a mask of a byte a number

        block, (batch, tokens, width) = self.block, x.shape
        parts = block.attention.qkv(block.norm_1(x)).chunk(3, dim=-1)
        q, k, v = (p.view(batch, tokens, self.heads, -1).transpose(1, 2) for p in parts)
        weights = drop((q @ k.mT * (width // self.heads) ** -0.5).softmax(-1))
        x = x + drop(block.attention.out((weights @ v).transpose(1, 2).reshape(batch, tokens, width)))
        return x + drop(block.mlp(block.norm_2(x)))


def test_the_layer_of_the_paper_keeps_what_the_paper_says():
    batch, tokens, width, heads = 2, 64, 256, 8
    layer, x = (
        Stored(width, heads).bfloat16(),
        torch.randn(batch, tokens, width, dtype=torch.bfloat16, requires_grad=True),
    )
    with vram.saving(layer) as kept:
        layer(x)
    derived = vram.activation_bytes(1, width, heads, tokens, batch, fused=False, dropout=True)
    assert kept.bytes == pytest.approx(derived, rel=0.01)


@pytest.mark.parametrize("segments", [1, 2, 4])
def test_checkpoints_keep_their_inputs_and_one_segment_at_a_time(segments):
    blocks, x = nn.ModuleList(Block(256, 4) for _ in range(4)), torch.randn(2, 32, 256, requires_grad=True)

    def run(part, y):
        for block in part:
            y = block(y)[0]
        return y

    size, y = 4 // segments, x
    with vram.saving(blocks) as inputs:
        for i in range(0, 4, size):
            y = checkpoint(run, blocks[i : i + size], y, use_reentrant=False)
    with vram.saving(blocks) as one:
        run(blocks[:size], x)
    assert inputs.bytes == segments * x.nbytes
    assert inputs.bytes + one.bytes == pytest.approx(
        vram.activation_bytes(4, 256, 4, 32, 2, number=4, segments=segments), rel=0.02
    )


@pytest.mark.parametrize("segments", [0, 33])
def test_impossible_segments_are_refused(segments):
    with pytest.raises(ValueError, match="ask for 1 to 32"):
        vram.activation_bytes(32, 64, 4, 8, segments=segments)


def test_a_storage_counts_once_and_weights_not_at_all():
    layer, x = nn.Linear(8, 8), torch.ones(4, 8, requires_grad=True)
    with vram.saving(layer) as kept:
        y = layer(x)
        y * y + y.view(-1).sum() * y.sum()
    assert (tuple(x.shape), torch.float32, 128) in kept.tensors
    assert kept.bytes == 128 + 128 + 2 * 4  # x, y, and both sums


def test_parts_of_a_batch_count_as_parts():
    layer, batch = nn.Linear(10, 3), torch.ones(64, 10)
    first, second = batch.split([16, 48])
    with vram.saving(layer) as one:
        layer(first)
    with vram.saving(layer) as both:
        layer(first), layer(second), layer(first)
    assert one.tensors == [((16, 10), torch.float32, 16 * 10 * 4)]
    assert both.bytes == batch.nbytes == 64 * 10 * 4


def test_a_saved_part_of_a_result_keeps_the_whole_result():
    layer, x = nn.Linear(10, 3), torch.ones(64, 10, requires_grad=True)
    with vram.saving(layer) as kept:
        layer((x + 1)[:16])
    assert kept.bytes == 64 * 10 * 4


def test_gradients_are_the_same_while_tensors_are_counted():
    torch.manual_seed(0)
    model, rows = Transformer(), worksheet(4)
    other = copy.deepcopy(model)
    with vram.saving(model):
        model.loss(rows).backward()
    other.loss(rows).backward()
    assert all(
        torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), other.parameters(), strict=True)
    )


def test_the_cache_of_a_7b_model_is_half_a_mib_a_token():
    assert vram.kv_cache_bytes(32, 4096, 1) == 2**19
    assert vram.kv_cache_bytes(32, 4096, 100, batch=3, number=1, groups=8) == 300 * 2**19 / 16


def test_the_cache_of_the_course_s_transformer_is_what_the_formula_says():
    model, cache = Transformer(width=64, layers=3, heads=4), []
    with torch.no_grad():
        model(worksheet(5)[:, :7], cache)
    counted = sum(array.nbytes for pair in cache for array in pair)
    assert counted == vram.kv_cache_bytes(3, 64, tokens=7, batch=5, number=4) == 2 * 3 * 64 * 7 * 5 * 4


@pytest.mark.gpu
def test_on_a_gpu_the_allocator_holds_the_derived_state_and_activations():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    model, rows = (
        Transformer(1024, width=1024, heads=16, layers=8, context=512).cuda(),
        torch.randint(1024, (8, 513), device="cuda"),
    )
    adam = torch.optim.Adam(model.parameters())
    model.loss(rows).backward()
    adam.step()
    state = torch.cuda.memory_allocated() - before
    assert state == pytest.approx(
        sum(vram.training_bytes(sum(p.numel() for p in model.parameters()), "FP32, Adam").values()), rel=0.1
    )
    x = functional.layer_norm(torch.randn(8, 512, 1024, device="cuda"), (1024,)).requires_grad_()
    before, y = torch.cuda.memory_allocated(), x
    for block in model.blocks:
        y = block(y)[0]
    kept = torch.cuda.memory_allocated() - before
    assert kept == pytest.approx(vram.activation_bytes(8, 1024, 16, 512, 8, number=4), rel=0.1)
