"""Claims about work: what is parallel, what a product costs, what waits for memory,
what training and inference do.
"""

import numpy as np

from warplab.hardware import specs
from workshop.claims.decision import Decision


def all_at_once() -> Decision:
    """Threads that an H100 holds at the same time."""
    resident = specs.get("h100-sxm")["max_resident_threads"].value
    return Decision(
        {"100,000 sums": 100_000 <= resident, "1,000,000 sums": 1_000_000 <= resident}, {"resident": resident}
    )


def nothing_waits() -> Decision:
    """Amdahl: 1 / (s + (1 - s) / p) with a serial share s of 5 %."""
    p = specs.get("h100-sxm")["fp32_lanes"].value
    speedup = 1 / (0.05 + 0.95 / p)
    return Decision({"a job with 5 % in sequence": speedup >= 0.99 * p}, {"speedup": speedup, "p": p})


def steps_are_independent() -> Decision:
    """Two steps of gradient descent on w^2 / 2 at rate 0.5: in sequence, and both from
    the same start added up.
    """
    gradient, w = (lambda w: w), 1.0
    first = w - 0.5 * gradient(w)
    in_sequence = first - 0.5 * gradient(first)
    at_once = w - 0.5 * gradient(w) - 0.5 * gradient(w)
    return Decision({"same result": in_sequence == at_once}, {"sequence": in_sequence, "at_once": at_once})


def brute_force() -> Decision:
    """20 weights: gradient steps to 1e-6 of the best loss, against trying ten values of each."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 20))
    best, w, steps = rng.standard_normal(20), np.zeros(20), 0
    y = x @ best
    start = np.mean((x @ w - y) ** 2)
    while np.mean((x @ w - y) ** 2) > 1e-6 * start:
        w -= 0.3 * x.T @ (x @ w - y) / len(x)
        steps += 1
    return Decision({"as many trials": steps >= 10**20}, {"steps": steps, "trials": 20})


def products_dominate() -> Decision:
    """A GPT-2 block, 1,024 tokens of width 768, 12 heads: FLOPs in products and,
    counted generously, elsewhere.
    """
    s, h, heads = 1024, 768, 12
    products = 24 * s * h * h + 4 * s * s * h
    elsewhere = (
        2 * 10 * s * h + 10 * heads * s * s + 20 * 4 * s * h + 2 * s * h
    )  # norms, softmax, GELU, residuals
    share = products / (products + elsewhere)
    return Decision({"a transformer block": share > 0.9}, {"share": 100 * share})


def any_order() -> Decision:
    """Each output of an 8 x 8 product computed alone, in a random order, against the product itself."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 8, 8))
    c = np.zeros((8, 8), a.dtype)
    for where in rng.permutation(64):
        row, col = divmod(int(where), 8)
        c[row, col] = sum(a[row, k] * b[k, col] for k in range(8))
    return Decision({"outputs in any order": bool((c == a @ b).all())}, {"outputs": 1024**2})


def two_by_two() -> Decision:
    a, b = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]])
    by_hand = [[1 * 5 + 2 * 7, 1 * 6 + 2 * 8], [3 * 5 + 4 * 7, 3 * 6 + 4 * 8]]
    return Decision(
        {"eight products, four sums": bool((a @ b == by_hand).all())}, {"corner": int((a @ b)[0, 0])}
    )


def two_billion() -> Decision:
    pairs = 1024**3
    return Decision(
        {"multiply-adds": abs(pairs - 2e9) < 0.1e9}, {"pairs": pairs / 1e9, "flop": 2 * pairs / 1e9}
    )


def _ridge() -> float:
    return specs.get("h100-sxm")["ridge_bf16"].si


def memory_is_the_limit() -> Decision:
    """FLOP per byte of common operations in BF16 (in, out, once each) against the H100's ridge."""
    intensity = {
        "addition": 1 / 6,
        "GELU": 20 / 4,
        "one row times a 4,096 matrix": 2 * 4096**2 / (2 * (4096**2 + 2 * 4096)),
    }
    ridge = _ridge()
    return Decision(
        {name: value < ridge for name, value in intensity.items()},
        {"ridge": ridge, "row": intensity["one row times a 4,096 matrix"]},
    )


def never_idle() -> Decision:
    """Share of the FP32 peak that an FP32 addition (12 bytes, 1 operation) can reach."""
    h100 = specs.get("h100-sxm")
    share = h100["memory_bandwidth"].si / 12 / h100["peak_fp32"].si
    return Decision({"vector addition": share > 0.5}, {"share": 100 * share})


def attention_bytes() -> Decision:
    """Bytes of attention that stores its N x N matrix (written and read twice) over
    bytes of Q, K, V and O alone; d = 64. Measured: 40.3 and 4.4 GB (Dao et al. 2022, figure 2).
    """
    ratio = {n: (4 * n * n + 4 * n * 64) / (4 * n * 64) for n in (32, 1024)}
    numbers = {"short": ratio[32], "long": ratio[1024], "measured": 40.3 / 4.4}
    return Decision({f"N = {n}": r >= 2 for n, r in ratio.items()}, numbers)


def backward_is_twice() -> Decision:
    """Y = X W costs 2MNK; dX = dY W^T and dW = X^T dY cost 2MNK each."""
    m, n, k = 64, 32, 16
    forward, backward = 2 * m * n * k, 2 * m * k * n + 2 * k * n * m
    return Decision(
        {
            "training does more than forward": backward > 0,
            "forward alone is a third": 3 * forward == forward + backward,
        }
    )


def one_pass() -> Decision:
    """Passes for a label and for 200 tokens; the least time of a pass of 7 B FP16 weights on an H100."""
    seconds = 14e9 / specs.get("h100-sxm")["memory_bandwidth"].si
    return Decision(
        {"a label": True, "an answer of 200 tokens": 200 == 1}, {"ms": 1e3 * seconds, "tokens": 1 / seconds}
    )


def batches_and_latency() -> Decision:
    """Least time of a decoding step of b requests, 7 B FP16 weights on an H100: the
    weights' bytes or the arithmetic.
    """
    h100 = specs.get("h100-sxm")

    def step(b):
        return max(14e9 / h100["memory_bandwidth"].si, b * 2 * 7e9 / h100["peak_fp16"].si)

    readings = {f"a step of {b} requests is shorter than one of 1": step(b) < step(1) for b in (8, 64, 512)}
    come = 2 / step(1)  # a second: twice what is served one by one, so that such a queue grows without end
    readings["a batch of 8 keeps up where one by one does not"] = 1 / step(1) < come < 8 / step(8)
    return Decision(readings, {"throughput": 64 * step(1) / step(64), "slower": step(512) / step(1)})


def large_batches() -> Decision:
    """Least time a token of a decoding step of b requests, 7 B FP16 weights on an H100."""
    h100 = specs.get("h100-sxm")

    def token(b):
        return max(14e9 / h100["memory_bandwidth"].si, b * 2 * 7e9 / h100["peak_fp16"].si) / b

    grows = {b: token(b) / token(2 * b) for b in (1, 64, 512)}
    readings = {f"{2 * b} are served faster than {b}": ratio > 1.01 for b, ratio in grows.items()}
    return Decision(readings, {"ridge": h100["ridge_fp16"].si})


YEAR = 365.25 * 86400


def gpt3_on_cpus() -> Decision:
    """3.14e23 FLOP (Brown et al. 2020, appendix D) at the FP32 peak of one EPYC, and of ten thousand."""
    years = 3.14e23 / specs.get("epyc-9654")["peak_fp32"].si / YEAR
    return Decision(
        {"one CPU": years > 1, "10,000 CPUs at their peak": years / 10_000 > 1},
        {"years": years, "days": years / 1e4 * 365.25},
    )


IMAGES = 90 * 1.281167e6  # 90 epochs of ImageNet's training set


def resnet_on_a100() -> Decision:
    """29 hours against what NVIDIA published for one A100 and one V100 (cited: nvidia_resnet50)."""
    published = {"mixed precision": 14, "TF32": 36}
    return Decision(
        {name: abs(hours - 29) <= 2.9 for name, hours in published.items()}, {"rate": IMAGES / (29 * 3600)}
    )


def resnet_on_cpu() -> Decision:
    """Days for 90 epochs, forward and backward three times 3.8e9 multiply-adds an image (He et al. 2016)."""
    cpu = specs.get("epyc-9654")["peak_fp32"].si
    days = IMAGES * 3 * 2 * 3.8e9 / cpu / 86400
    return Decision(
        {"at its peak": 14 <= days <= 21, "at a quarter of it": 14 <= 4 * days <= 21},
        {"peak": days, "quarter": 4 * days},
    )
