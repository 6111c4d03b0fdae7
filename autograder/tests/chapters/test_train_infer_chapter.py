"""Chapter 9: its counts are the counter's, its bounds follow from the registry, its
queue is the textbook's, its ratios are right.
"""

import re
from functools import cache, partial

import jupytext
import numpy as np
import pytest
import torch
from conftest import ROOT
from page_code import defined, text_of
from torch.nn import functional as F

from warplab.evidence import catalogue, measure
from warplab.evidence import take as machine
from warplab.evidence.experiments import inference
from warplab.evidence.measure import Evidence, Measurement
from warplab.figures import train_infer as figures
from warplab.hardware import specs
from warplab.models import networks as models
from warplab.models import vram

BOOK = ROOT / "chapters"
H100 = specs.get("h100-sxm")
BANDWIDTH, PEAK = H100["memory_bandwidth"].si, H100["peak_bf16"].si
TEXT = text_of("09-train-infer")
EQUALS = models.ALPHABET.index("=")


chapter = cache(partial(defined, "09-train-infer", EQUALS=EQUALS, bandwidth=BANDWIDTH, weights=7e9))


@cache
def network():
    torch.manual_seed(0)
    return models.Transformer(width=48)


@pytest.fixture(autouse=True)
def one_core():
    """As in the chapter: products this small only lose by waiting for a second core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def says(*numbers):
    missing = [number for number in numbers if number not in TEXT]
    assert not missing, missing


def total(counts):
    return sum(counts["Global"].values())


def test_the_loss_judges_only_what_follows_the_equals_sign():
    model, row = network(), models.worksheet(1, seed=4)
    logs = F.log_softmax(model(row[:, :-1]), -1)[0]
    start = int((row[0] == EQUALS).nonzero())
    by_hand = -sum(logs[i, row[0, i + 1]] for i in range(start, 11)) / (11 - start)
    assert chapter()["loss_of_answers"](model, row).item() == pytest.approx(by_hand.item(), rel=1e-5)


@pytest.mark.slow
def test_the_training_loop_lowers_the_loss():
    torch.manual_seed(0)
    losses = chapter()["learn"](models.Transformer(width=48), models.worksheet(4000), 60)
    assert losses[0] == pytest.approx(np.log(13), abs=0.5)
    assert np.mean(losses[-5:]) < 0.75 * losses[0]


@pytest.mark.slow
def test_a_sum_gets_its_mark_exactly_when_the_model_would_write_it():
    torch.manual_seed(1)
    model, exam = models.Transformer(width=48), models.worksheet(40, seed=5)
    chapter()["learn"](model, exam, 120)  # 40 sums, learnt by heart: some right, some wrong
    marks = chapter()["marks"](model, exam)
    written = [chapter()["finish"](model, models.read(row).split("=")[0] + "=") for row in exam]
    assert [text == models.read(row) for text, row in zip(written, exam, strict=True)] == marks.tolist()
    assert 0 < marks.sum()


def test_the_worksheet_has_about_half_of_all_sums():
    assert len(
        {tuple(row) for row in models.worksheet(7_000, seed=1, below=100).tolist()}
    ) / 10_000 == pytest.approx(0.5, abs=0.02)


def test_the_page_s_own_network_learns_is_harmed_by_pruning_and_recovers(printed_in_book):
    said = re.findall(r"(dense|pruned|trained on): (\d+)% right", printed_in_book("09-train-infer"))
    assert [name for name, _ in said] == ["dense", "pruned", "trained on"]
    dense, pruned, again = (int(right) / 100 for _, right in said)
    assert dense > 0.6 and pruned < 0.7 * dense and again > 0.6


@pytest.mark.slow
def test_every_layer_costs_twice_backward_but_the_first_convolution():
    batch, model = models.worksheet(64), network()
    forward, both = (
        chapter()["count"](run) for run in (lambda: model.loss(batch), lambda: model.loss(batch).backward())
    )
    assert (total(forward), total(both)) == (81_709_056, 3 * 81_709_056)
    products, attention = (
        55_920,
        2 * 4 * 11 * 48,
    )  # weights in products; FLOP a token of attention in two layers
    assert total(forward) == 704 * (2 * products + attention)
    conv, (images, labels) = models.ConvNet(), models.pictures(8)
    ahead, all_ = (
        chapter()["count"](run)
        for run in (lambda: conv(images), lambda: F.cross_entropy(conv(images), labels).backward())
    )
    backward = total(all_) - total(ahead)
    assert backward == 2 * total(ahead) - figures._of(ahead, "features.0")
    alt = figures.passes(forward, both, ahead, all_).alt
    assert "conv 1: 0.59 forward, 0.59 backward" in alt and "head: 0.88 forward, 1.76 backward" in alt


def test_six_n_d_and_where_it_fails():
    parameters = sum(p.numel() for p in network().parameters())
    assert parameters == 58_464
    assert 6 * parameters * 704 / (3 * 81_709_056) == pytest.approx(1.007, abs=5e-4)
    says("58,464 weights", "2⁵⁸⁴⁶⁴", f"11/288, or {100 * 11 / 288:.1f} %")


def test_gpt_3():
    N = 12 * 96 * 12_288**2 + (50_257 + 2_048) * 12_288
    days = 6 * N * 300e9 / (0.4 * PEAK) / 86_400
    assert (round(days), round(days / 365), round(days / 1000)) == (9191, 25, 9)
    says("52 % of an A100's", "it is 39 %")


def test_no_grad_saves_the_bytes_and_eval_none():
    batch, model = models.worksheet(64), models.Transformer(width=48)

    def kept():
        with vram.saving(model) as saved:
            model.loss(batch)
        return saved.bytes

    training = model.train() and kept()
    assert training > 64 * 11 * 48 * 4 * 2 * 10 and (model.eval() and kept()) == training
    with torch.no_grad():
        assert kept() == 0


@pytest.mark.slow
def test_the_cache_changes_the_work_and_not_the_text():
    prompts = models.worksheet(200, seed=2, below=100)
    prompts = prompts[prompts[:, 5] == EQUALS][:64, :6]
    out, cost = {}, {}
    for keep in False, True:
        cost[keep] = total(
            chapter()["count"](
                lambda keep=keep: out.update({keep: chapter()["write"](network(), prompts, 4, keep)})
            )
        )
    assert torch.equal(out[False], out[True]) and out[True].shape[1] == 10
    assert 3.33 < cost[False] / cost[True] < 3.37  # "a little above"


def test_the_bounds_of_prefill_and_decode():
    step = chapter()["decode"]
    assert 14e9 / BANDWIDTH * 1e3 == pytest.approx(4.18, abs=0.005) and int(BANDWIDTH / 14e9) == 239
    assert vram.kv_cache_bytes(32, 4096, 1) == 2 * 32 * 4096 * 2 == 524_288
    assert int((H100["memory_capacity"].si - 14e9) / 524_288_000) == 125
    flop, size = step(125)
    assert size == pytest.approx(79.5e9, rel=1e-3) and size / BANDWIDTH == pytest.approx(23.7e-3, rel=2e-3)
    assert round(BANDWIDTH / size) == 42 and round(125 * BANDWIDTH / size) == 5265
    assert 125 * step(1)[1] / size == pytest.approx(23, abs=0.5)
    assert flop / size == pytest.approx(22.8, abs=0.05) and flop / PEAK < size / BANDWIDTH
    assert np.divide(*step(10**9)) == pytest.approx(27.7, abs=0.05) and np.divide(*step(1)) == pytest.approx(
        1, abs=0.001
    )
    prefill = 14e9 * 1000 + 32 * 2 * 1000**2 * 4096
    written = sum(step(1, context)[1] for context in range(1000, 2000)) / BANDWIDTH  # the cache grows
    assert prefill / PEAK == pytest.approx(14.4e-3, rel=2e-3) and written == pytest.approx(4.4, abs=0.05)
    assert written / (prefill / PEAK) == pytest.approx(300, rel=0.03)
    assert prefill / step(1)[1] > H100["ridge_bf16"].value > 27.7
    says("239 tokens a second", "79.5 GB, 23.7 ms, 42 tokens a second", "5,265", "27.7 FLOP a byte")
    says("14.4 ms", "4.4 s", "300 times")


@pytest.mark.slow
def test_one_at_a_time_the_queue_waits_as_long_as_the_textbook_says():
    """M/D/1: the mean wait is rho / (2 (1 - rho)) services (Pollaczek and Khinchine)."""
    service = chapter()["answer_time"](1)
    came = np.random.default_rng(0).exponential(1.0, 200_000).cumsum() * service / 0.5
    wait = chapter()["serve"](came, 1) - came - service
    assert wait.mean() / service == pytest.approx(0.5, rel=0.03)


def test_a_batch_never_exceeds_its_limit_and_ends_together():
    finish = chapter()["serve"](np.zeros(20), 8)
    assert np.unique(finish, return_counts=True)[1].tolist() == [8, 8, 4]
    assert finish[0] == pytest.approx(chapter()["answer_time"](8))


def test_the_walls_and_percentiles_of_the_queue():
    time = chapter()["answer_time"]
    assert [round(b / time(b), 2) for b in (1, 8, 32)] == [1.15, 7.36, 17.42]
    assert (round(time(1), 2), round(time(32), 2)) == (0.87, 1.84)
    arrivals = np.random.default_rng(9).exponential(1.0, 4000).cumsum()

    def p(limit, load):
        return np.percentile(chapter()["serve"](arrivals / load, limit) - arrivals / load, (50, 95))

    assert p(1, 1)[1] / time(1) == pytest.approx(10, abs=1)  # "ten times as long as an answer takes"
    assert p(8, 1)[1] < p(1, 1)[1] / 5
    assert p(32, 0.95 * 32 / time(32))[0] == pytest.approx(2.7, abs=0.05) and 2.7 / time(1) == pytest.approx(
        3, abs=0.15
    )
    assert p(8, 7)[1] == pytest.approx(4, abs=0.3) and p(32, 7)[1] == pytest.approx(2, abs=0.3)  # quiz 7


@pytest.mark.slow
def test_continuous_batching_needs_nine_steps_of_fifteen():
    lengths = 3, 9, 2, 4, 6, 2, 5, 3
    static, continuous = (chapter()["schedule"](lengths, 4, kind) for kind in (False, True))
    for rows, steps, busy in ((static, 15, 57), (continuous, 9, 94)):
        assert max(last for _, _, last in rows) == steps and round(100 * sum(lengths) / (4 * steps)) == busy
        assert [last - first for _, first, last in rows] == list(lengths)
        for slot in range(4):
            mine = sorted((first, last) for s, first, last in rows if s == slot)
            assert all(a[1] <= b[0] for a, b in zip(mine, mine[1:], strict=False))
    assert "15 steps" in figures.timeline(static, continuous).body


def test_attention_over_pieces_of_a_cache_is_attention_over_the_whole():
    torch.manual_seed(0)
    q, keys, values = 5 * torch.randn(16), torch.randn(50, 16), torch.randn(50, 16)
    attend, merge = chapter()["attend"], chapter()["merge"]
    whole = torch.softmax(keys @ q / 4, 0) @ values
    unequal = [attend(q, keys[a:b], values[a:b]) for a, b in ((0, 1), (1, 40), (40, 50))]
    torch.testing.assert_close(merge(unequal), whole)
    sums = sum(part[0] for part in unequal) / sum(part[2] for part in unequal)  # without the largest scores
    assert not torch.allclose(sums, whole, rtol=0.01)


def test_the_numbers_of_long_texts():
    assert round(14e9 / vram.kv_cache_bytes(32, 4096, 1), -2) == 26_700
    assert H100["sms"].value == 132
    pair = 65_536 * 2 * 2 * 128 * 2  # tokens, keys and values, heads, numbers, bytes
    assert round(pair / specs.get("a100-sxm")["memory_bandwidth"].si * 1e6) == 33
    says(f"{pair / 1e6:.0f} MB", "33 µs at best", "2,301 µs", "26,700 tokens")


def test_a_text_waits_until_its_places_are_free(monkeypatch):
    names = chapter()
    for name, value in {"room": 5000, "each": 524_288, "h100": H100}.items():
        monkeypatch.setitem(names, name, value)
    requests = [(0.0, 100, 3), (0.0, 100, 2)]
    apart = names["stream"](requests, lambda n: 4096)
    read, steps = names["read"](100), sum(names["step"]([(0, n, 1)]) for n in (100, 101, 102))
    assert apart.tolist() == [pytest.approx((1, read)), pytest.approx((1, 2 * read + steps))]
    together = names["stream"](requests, lambda n: n)
    assert together.tolist() == [pytest.approx((1, read)), pytest.approx((2, 2 * read))]
    shared = names["stream"](requests, lambda n: n, shared=60)
    assert shared[0, 1] == pytest.approx(names["read"](40))


def test_the_room_that_is_drawn_is_the_sum_of_its_pieces():
    alt = figures.cache_room([100, 40], 300, longest=128, page=16, shared=32).alt
    # 300 - 2 x 128; 300 - (112 + 48); 300 - (32 + 80 + 16)
    assert "leave 44 free" in alt and "140 hold a token" in alt
    assert "in pages 140 are free" in alt and alt.endswith("of 32 172.")


@pytest.mark.slow
def test_pages_take_away_the_queue_that_reservations_make(monkeypatch):
    names, arrivals = chapter(), np.random.default_rng(9).exponential(1.0, 4000).cumsum()
    sources = {c.source for c in jupytext.read(BOOK / "09-train-infer.md", fmt="md:myst").cells}
    space = {**names, "np": np, "vram": vram, "h100": H100, "arrivals": arrivals}
    for start in ("from collections import deque", "def stream("):
        exec(next(source for source in sources if source.startswith(start)), space)
    held, step = [], space["step"]
    space["step"] = lambda texts: held.append(sum(n for _, n, _ in texts)) or step(texts)
    p95 = {}
    for name, claim, shared in (
        ("reserved", lambda n: 4096, 0),
        ("pages", lambda n: -(-n // 16) * 16, 0),
        ("prefix", lambda n: -(-n // 16) * 16, 512),
    ):
        held.clear()
        running, waits = space["stream"](space["requests"], claim, shared).T
        p95[name] = np.percentile(waits, 95)
        assert len(waits) == 1000 and max(held) <= space["room"]
        if name == "reserved":
            assert running.max() == 30
            assert 0.2 < np.mean(held) / space["room"] < 0.3  # "three quarters are empty"
    assert p95["reserved"] > 100 * p95["pages"] and 0.4 < p95["prefix"] / p95["pages"] < 0.6
    now = [prompt + answer // 2 for _, prompt, answer in space["requests"][:30]]
    assert (space["room"] - sum(now)) / np.mean(now) > 100  # "room for a hundred more"
    prompts = [prompt for _, prompt, _ in space["requests"]]
    assert 512 / np.median(prompts) == pytest.approx(2 / 3, abs=0.02)


def test_the_mask_keeps_the_two_largest_of_each_four():
    weight = torch.tensor([[1.0, -5, 3, 0.5, -1, -2, -3, -4]])
    assert chapter()["mask_24"](weight).tolist() == [[0, 1, 1, 0, 0, 0, 1, 1]]
    mask = chapter()["mask_24"](torch.randn(48, 192))
    assert (mask.unflatten(1, (-1, 4)).sum(2) == 2).all()


def test_quantised_weights_move_the_bound():
    assert [round(BANDWIDTH / (7e9 * bits / 8)) for bits in (16, 8, 4)] == [239, 479, 957]


def test_the_quiz():
    a100 = specs.get("a100-sxm")["peak_bf16"].si
    work = 6 * 1e9 * 2e10
    assert work / (a100 / 2) / 86_400 == pytest.approx(8.9, abs=0.05)
    cache = 524_288_000
    one, full = 3.5e9 + cache, 3.5e9 + 125 * cache
    assert one / BANDWIDTH == pytest.approx(1.2e-3, abs=0.05e-3) and round(BANDWIDTH / one) == 832
    assert full / BANDWIDTH == pytest.approx(20.6e-3, abs=0.05e-3)
    assert round(125 * BANDWIDTH / full) == 6066
    assert BANDWIDTH / one / (BANDWIDTH / (14e9 + cache)) == pytest.approx(3.6, abs=0.05)


def test_the_experiments_count_two_flop_a_weight_and_token(monkeypatch):
    monkeypatch.setitem(inference.SHAPE, "cpu", {"width": 32, "heads": 2, "layers": 2, "context": 260})
    weights = 2 * 12 * 32**2
    cases = list(catalogue.get("decode_batch").cases("cpu"))
    assert [case.flops for case in cases] == [2 * weights * case.x for case in cases]
    series = {
        case.series: case.flops / (2 * weights * (case.x if "prefill" in case.series else 1))
        for case in catalogue.get("prefill_and_decode").cases("cpu")
    }
    assert series == {"cpu: prefill": 1, "cpu: decode": 1}


@pytest.mark.slow
def test_the_figure_of_batches_says_when_no_gpu_was_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(inference.SHAPE, "cpu", {"width": 32, "heads": 2, "layers": 1, "context": 32})
    points = tuple(machine.run(catalogue.get("decode_batch"), "cpu", 0.01))
    live = Evidence("live", "a processor", "live: measured on this machine, a processor, now", points)
    drawn = figures.batching(Measurement("decode_batch", "What?", "requests", "missing", (live,)))
    assert "not recorded yet" in drawn.body and "on a GPU: not recorded yet" in drawn.alt


@pytest.mark.slow
def test_the_figure_of_batches_shows_each_published_row_and_none_beats_the_weights_bytes():
    drawn = figures.batching(measure.shown_without_running("decode_batch"))
    for said in ("batch 128, 4,570 tokens a second, 26.7 ms", "batch 511, 9,806 tokens a second, 47.4 ms"):
        assert said in drawn.alt
    weights = {"A100": (14e9, "a100-sxm"), "H100": (16e9, "h100-sxm"), "B200": (16e9, "b200")}
    sources = measure.published("decode_batch")
    for evidence in sources:
        size, card = next(found for name, found in weights.items() if name in evidence.device)
        assert min(p.median for p in evidence.points) > size / specs.get(card)["memory_bandwidth"].si
    between, rates = figures._steps_and_rates(sources[1].series())
    assert len(between) == len(rates) == 11 and dict(between)[7.978] == pytest.approx(7.316, abs=0.001)
    late = [dict(rates)[510.9] / dict(rates)[191.7], dict(between)[510.9] / dict(between)[191.7]]
    assert [round(g, 1) for g in late] == [1.2, 2.3]
    says("by a fifth and the wait 2.3 times")
    h100, b200 = (dict(figures._steps_and_rates(e.series())[1]) for e in sources[1:])
    assert b200[63.8] > h100[63.92] and b200[127.5] < h100[127.6]  # "falls back at 128 requests"


def test_the_formula_of_a_step_bounds_every_record_and_the_caches_bytes_do_not_explain_the_rest():
    records = measure.records("prefill_and_decode")
    prompts = {record.device: {(p.series, p.x): p.median for p in record.points} for record in records}
    for record in measure.records("decode_batch"):
        card = specs.get("h200-sxm" if "H200" in record.device else "h100-sxm")
        rate, took = card["memory_bandwidth"].si, {p.x: p.median for p in record.points}
        for batch, seconds in took.items():
            caches = 16 * vram.kv_cache_bytes(4, 8192, 1, batch) / rate
            products = 2 * 4 * 12 * 8192**2 * batch / card["peak_fp16"].si
            assert seconds > (bound := max(products, 2 * 4 * 12 * 8192**2 / rate) + caches)
        assert took[64] < 1.4 * took[1] and 1.2 < took[128] / took[64] < 1.25 and 2.6 < seconds / bound < 2.9
        assert 2.3 < 1e3 * (took[256] - prompts[record.device]["cuda: prefill", 256]) < 2.5
    caches = 256 * 16 * vram.kv_cache_bytes(4, 8192, 1)
    assert (round(caches / 1e9, 2), round(1e3 * caches / BANDWIDTH, 2), 256 * 64 * 4) == (0.54, 0.16, 65_536)
    says("0.54 GB, which the H100 reads in 0.16 ms", "65,536 pieces", "2.3 to 2.5 ms longer")


def test_a_token_read_costs_about_a_two_hundredth_of_one_written():
    for record in measure.records("prefill_and_decode"):
        took = {(p.series, p.x): p.median for p in record.points}
        prompt, token = took["cuda: prefill", 256], took["cuda: decode", 256]
        assert 1.05 < prompt / token < 1.45 and 256 * token / prompt == pytest.approx(200, rel=0.2)
    says("1.1 to 1.4 times as long as the one token", "about a two-hundredth of a token written")


def test_the_thresholds_of_serving():
    """Products, then caches: from ridge rows on the products are compute-bound, and the step is while the
    caches of a request are shorter than its FLOP.
    """
    ridge = PEAK / BANDWIDTH
    for context, k, n in ((90, 524_288, 7e9), (1447, 327_680, 70e9)):
        assert round(2 * n / (ridge * k)) == context
        for batch in (1, 300, 10_000):
            assert 2 * n * batch / PEAK > batch * (context - 1) * k / BANDWIDTH
            assert 2 * n * batch / PEAK < batch * (context + 1) * k / BANDWIDTH
    each = 2 * 7e9 + 32 * 4 * 1000 * 4096  # FLOP that a further request of 1,000 tokens brings
    assert round(each / 1e9, 1) == 14.5 and int(14e9 / 524_288_000) + 1 == 27
    says("14.5 GFLOP and 0.52 GB", "27 requests of 1,000 tokens", "is 90 tokens")


def test_a_prompt_in_chunks(monkeypatch):
    """Chunks of 256 and 32 requests are below the ridge: no step is longer than weights and caches take."""
    names = chapter()
    for name, value in {"each": 524_288, "h100": H100}.items():
        monkeypatch.setitem(names, name, value)
    sizes = (8192, 512, 256, 128)
    passes = {n: [names["mixed"](n, d) for d in range(0, 8192, n)] for n in sizes}
    assert [round(1e3 * sum(p)) for p in passes.values()] == [134, 214, 315, 630]
    assert 256 + 32 < PEAK / BANDWIDTH < 512 + 32
    caches = 524_288 * (32 * 1000 + 8192)
    assert max(passes[256]) == pytest.approx((14e9 + caches) / BANDWIDTH)
    assert [round(1e3 * max(passes[n]), 1) for n in (512, 256, 128)] == [14.0, 10.5, 10.5]
    assert names["decode"](32)[1] == pytest.approx(30.8e9, rel=2e-3)
    says("134 ms", "315 ms instead of 134", "after 214 ms, for steps of up to 14 ms", "64 times")


def test_a_check_of_drafts_costs_a_plain_pass_until_its_rows_pass_the_ridge(monkeypatch):
    names = chapter()
    monkeypatch.setitem(names, "h100", H100)
    plain, check = (
        [names["pass_time"](7e9, tokens, batch, 524_288_000) for batch in (1, 32, 125)] for tokens in (1, 5)
    )
    assert check[:2] == plain[:2] and check[2] - plain[2] == pytest.approx(
        14e9 * 625 / PEAK - 14e9 / BANDWIDTH
    )
    assert round(14e9 * 625 / PEAK * 1e3, 1) == 8.8 and round(125 * 524_288_000 / BANDWIDTH * 1e3) == 20
    quiz = 14e9 * 125 / PEAK, 125 * 524_288_000 / BANDWIDTH
    assert [round(1e3 * t, 1) for t in quiz] == [1.8, 19.6]
    assert round(125 / sum(quiz), -1) == 5860
    says("8.8 ms instead of 4.2, beside 20 ms of caches", "5,860 a second")


def test_latent_attention_and_drafts():
    small = 61 * (512 + 64) * 2
    says(f"{61 * 128 * 2 * (512 + 64 + 512) / small:.0f} FLOP for each byte")
