"""Chapter 11: its numbers are recomputed, its prices have sources, its loop survives
real signals, its manifests are Kubernetes's.
"""

import datetime
import json
import math
import re
import signal
import subprocess
import sys
from functools import cache, partial

import numpy as np
import pytest
import torch
import yaml
from conftest import ROOT, TESTS
from jsonschema import Draft202012Validator
from page_code import defined, run_cells, text_of

from warplab.hardware import prices, specs
from warplab.models import vram

BOOK = ROOT / "chapters"
CLUSTER = BOOK / "cluster"
TEXT = text_of("11-choosing")
SHELF = "t4", "rtx-4090", "a100-sxm", "h100-sxm", "h200-sxm", "b200"
H100 = specs.get("h100-sxm")


chapter = cache(partial(defined, "11-choosing"))


@cache
def module(name):
    """`warplab.figures.choosing`, `cluster.autoscale` or `cluster.spot_train`, as the page imports them."""
    import importlib

    sys.path.insert(0, str(BOOK))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BOOK))


# prices


def test_every_price_leads_to_a_document_a_day_and_a_card():
    for offer in prices.every().values():
        assert offer.source.url.startswith("https://") and offer.source.by in ("vendor", "other")
        assert datetime.date(2026, 1, 1) <= offer.seen <= datetime.date.today()
        assert offer.market in (prices.ON_DEMAND, prices.SPOT) and offer.gpus in (1, 8)
        assert 0 < offer.gpu_hour < 20
        assert offer.device == "" or offer.device in specs.names("gpu")
        assert str(offer.seen) in offer.origin() and offer.provider in offer.origin()


def test_the_lowest_offer_on_demand_is_the_cheapest_and_spot_is_asked_for_by_name():
    assert prices.get("aws-p5").gpu_hour == 55.04 / 8 == 6.88
    known = "runpod-h100 lambda-h100 coreweave-h100 aws-p5 google-a3 azure-h100".split()
    assert [offer.key for offer in prices.offers("h100-sxm")] == known
    assert prices.cheapest("h100-sxm").hourly == 2.69
    assert prices.offers("h200-sxm", prices.SPOT)[0].key == "aws-p5en-spot"


def test_a_card_without_a_price_has_none_and_a_wrong_name_is_an_error():
    assert prices.cheapest("v100-sxm2") is None and prices.offers("v100-sxm2") == []
    assert prices.purchase("t4") is None
    with pytest.raises(specs.SpecError, match="no device 'h100'"):
        prices.offers("h100")
    with pytest.raises(KeyError, match="no offer 'p5'"):
        prices.get("p5")


def test_every_price_of_the_prose_is_a_role():
    prose = re.sub(
        r"```\{code-cell\}.*?```", "", (BOOK / "11-choosing.md").read_text(encoding="utf-8"), flags=re.S
    )
    assert re.findall(r"\$\d[\d.]*", prose) == []
    for key, share in re.findall(r"\{price\}`([\w-]+)( gpu)?`", prose):
        assert prices.get(key).gpus > 1 or not share


def test_a_large_cloud_asks_1_7_to_4_6_times_the_lowest_price():
    pairs = {"aws-p4de": "a100", "aws-p5": "h100", "azure-h100": "h100", "aws-p5en": "h200"}
    ratios = [
        prices.get(large).gpu_hour / prices.get(f"runpod-{small}").gpu_hour for large, small in pairs.items()
    ]
    assert (round(min(ratios), 1), round(max(ratios), 1)) == (1.7, 4.6) and "1.7 to 4.6 times" in TEXT


# the four questions


def test_what_fits():
    cards_for, run_bytes = chapter()["cards_for"], chapter()["run_bytes"]
    assert [cards_for(key, *run_bytes(70, 16)) for key in SHELF] == [9, 6, 2, 2, 2, 1]
    spare = specs.get("h200-sxm")["memory_capacity"].si - 140e9
    assert spare == 1e9 and int(spare / vram.kv_cache_bytes(80, 8192, 1000, groups=8)) == 3
    assert cards_for("h200-sxm", 140e9) == 1 and cards_for("h200-sxm", *run_bytes(70, 16)) == 2
    weights, cache = run_bytes(13, 16)
    assert round((weights + cache) / 1e9, 1) == 34.2 and round(cache / 10 / 1e9, 2) == 0.82
    assert round((13e9 + cache) / 1e9, 1) == 21.2 and 21.2e9 < specs.get("rtx-4090")["memory_capacity"].si
    assert 2 * prices.cheapest("rtx-4090").gpu_hour == 0.58 and prices.cheapest("a100-sxm").gpu_hour == 1.39


def test_the_bounds_that_tell_an_h100_from_an_a100():
    flops, rate, readers = chapter()["flops"], chapter()["tokens_a_second"], chapter()["requests_on"]
    a100 = specs.get("a100-sxm")
    assert (readers(H100), readers(a100), readers(specs.get("t4"))) == (125, 125, 3)
    assert round(rate(H100, 125)) == 5265  # chapter 9's number
    assert round(flops(H100) / flops(a100), 1) == 3.2 and round(rate(H100, 125) / rate(a100, 125), 1) == 1.6
    assert round(prices.cheapest("h100-sxm").gpu_hour / prices.cheapest("a100-sxm").gpu_hour) == 2
    assert flops(specs.get("t4")) == 0.4 * 65e12


def test_the_link_between_cards():
    desk = H100["memory_bandwidth"].si
    assert desk / H100["nvlink_each_way"].si == pytest.approx(7.4, abs=0.05) and desk / 50e9 == 67
    assert 28 < H100["pcie_each_way"].si / 1e9
    assert "nvlink_total" not in specs.get("rtx-4090")


def test_dollars_for_a_result():
    million, exa = chapter()["per_million_tokens"], chapter()["per_exaflop"]
    full = {key: million(prices.cheapest(key)) for key in SHELF}
    assert max(full, key=full.get) == "t4" and full["t4"] > 15 * full["h200-sxm"]
    assert sorted(SHELF, key=lambda key: prices.cheapest(key).gpu_hour)[1] == "t4"
    assert round(full["h200-sxm"] / full["rtx-4090"], 1) == 1.5
    assert round(prices.cheapest("h200-sxm").gpu_hour / prices.cheapest("rtx-4090").gpu_hour) == 16
    company = [million(prices.cheapest(key), 1) / full[key] for key in SHELF[2:]]
    assert (round(min(company)), round(max(company))) == (23, 26) and "23 to 26 times" in TEXT
    assert exa(prices.get("runpod-h100")) == pytest.approx(2.69 / 3600 * 1e18 / (0.4 * 989.4e12))


def test_buying():
    power = 0.7 * prices.electricity()
    hours = prices.purchase("h100-sxm").dollars / (prices.cheapest("h100-sxm").gpu_hour - power)
    assert round(hours / 24) == 480
    assert round(100 * power) == 8 and round(100 * power / prices.cheapest("h100-sxm").gpu_hour) == 3


def test_energy_of_a_token():
    rate, readers = chapter()["tokens_a_second"], chapter()["requests_on"]
    joules = {key: specs.get(key)["tdp"].si / rate(specs.get(key), readers(specs.get(key))) for key in SHELF}
    assert min(joules, key=joules.get) == "b200" and max(joules, key=joules.get) == "t4"
    epyc = specs.get("epyc-9654")
    assert round(H100["peak_fp32"].si / epyc["peak_fp32"].si) == 9


def test_the_energy_experiment_is_for_a_gpu_and_divides_the_meter_by_the_calls(monkeypatch):
    from warplab.evidence import catalogue
    from warplab.evidence.experiments import energy

    experiment = catalogue.get("energy")
    assert not experiment.cpu and experiment.chapter == "11-choosing"
    calls = []
    monkeypatch.setattr(energy, "SECONDS", 0.01)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    # three calls warm up unmetered
    assert energy._joules(lambda: calls.append(1), lambda: 250 * max(0, len(calls) - 3)) == 0.25


# spot


def test_discounts_and_what_they_are_worth():
    off = [
        1 - prices.get(f"{key}-spot").hourly / prices.get(key).hourly
        for key in ("aws-p5en", "aws-p5en-eu", "aws-p5en-west")
    ]
    assert [round(100 * share) for share in off] == [58, 41, 0] and "58, 41 and nothing" in TEXT
    overhead = math.sqrt(2 * 60 / (4 * 3600))
    assert round(100 * overhead) == 9
    assert [round(1 / ((1 - share) * (1 + overhead)), 1) for share in off[:2]] == [2.2, 1.6]


@pytest.mark.parametrize(("hours", "minutes"), [(1, 11), (4, 22), (24, 54), (1, 45)])
def test_the_simulation_agrees_with_the_exact_expectation(hours, minutes):
    """Exponential interruptions: a segment of T + d takes M (e^((T + d)/M) - 1) on average."""
    mean, interval = 3600 * hours, 60 * minutes
    exact = mean * math.expm1((interval + 60) / mean) / interval - 1
    assert chapter()["lost"](interval, 60, mean) == pytest.approx(exact, rel=0.08)


def life(state, until=None, blow=None, steps=120, every=40):
    """One real process: its lines and its status."""
    program, lines = str(CLUSTER / "spot_train.py"), []
    command = [sys.executable, program, str(state), "--steps", str(steps), "--every", str(every)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            lines.append(line.split())
            if line.startswith(f"step {until} "):
                process.send_signal(blow)
    return lines, process.returncode


def losses(lines):
    return {int(n): loss for what, n, *loss in lines if what == "step"}


def test_the_page_itself_shoots_a_run_and_finds_the_same_bits(printed_in_book):
    said = printed_in_book("11-choosing")
    assert "same bits: True" in said and "same bits: False" not in said


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Real processes: one undisturbed; one that gets SIGTERM, then SIGKILL, then ends;
    one that goes on from SIGTERM with a wrong generator.
    """
    folder = tmp_path_factory.mktemp("spot")
    state, other = folder / "spot.pt", folder / "other.pt"
    found = {"whole": life(folder / "whole.pt"), "first": life(state, 20, signal.SIGTERM)}
    saved = torch.load(state, weights_only=True)
    torch.save(saved | {"rng": torch.Generator().manual_seed(1).get_state()}, other)
    found |= {
        "second": life(state, 65, signal.SIGKILL),
        "third": life(state),
        "astray": life(other, steps=saved["step"] + 1),
    }
    return found | {"saved": saved}


@pytest.mark.full
def test_a_run_that_is_told_to_go_and_a_run_that_is_shot_go_through_the_same_bits(runs):
    (whole, ended), (first, told), (second, shot), (third, done) = (
        runs[name] for name in ("whole", "first", "second", "third")
    )
    assert (ended, told, shot, done) == (0, 128 + signal.SIGTERM, -signal.SIGKILL, 0)
    assert list(losses(whole)) == list(range(1, 121))
    left = int(first[-1][1])
    # SIGTERM loses nothing, SIGKILL at most an interval
    assert first[-1] == ["saved", str(left)] and 20 <= left < 60 and second[0] == ["start", str(left)]
    resumed = int(third[0][1])
    assert 0 <= max(losses(second)) - resumed <= 40 and resumed in (left, 40, 80, 120)
    for lines in (first, second, third):
        assert losses(lines).items() <= losses(whole).items()
    assert losses(first) | losses(second) | losses(third) == losses(whole)
    assert float.fromhex(losses(whole)[120][0]) < 0.8 * float.fromhex(losses(whole)[1][0])
    assert set(runs["saved"]) == {"step", "model", "adam", "rng"}
    step, astray = runs["saved"]["step"] + 1, losses(runs["astray"][0])  # with another random generator
    assert astray.keys() == {step} and astray[step] != losses(whole)[step]


def test_a_save_that_fails_half_way_leaves_the_old_one_whole(tmp_path, monkeypatch):
    save, state = module("cluster.spot_train").save, tmp_path / "run.pt"
    save(state, {"step": 1})

    def breaks_off(value, file):
        file.write(b"half a")
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", breaks_off)
    with pytest.raises(OSError, match="no space"):
        save(state, {"step": 2})
    assert torch.load(state, weights_only=True) == {"step": 1}


def test_the_slurm_script_is_bash_and_asks_before_its_first_command():
    script = (CLUSTER / "train.sbatch").read_text(encoding="utf-8")
    check = lambda text: subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode  # noqa: E731
    assert check(script) == 0 and check(script.replace("\nfi\n", "\n")) != 0
    lines = script.splitlines()
    asks = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert asks and max(asks) < first  # sbatch stops reading them at the first command
    assert {"#SBATCH --signal=TERM@120", "#SBATCH --requeue"} <= set(lines)


# Kubernetes


@cache
def manifests():
    files = [CLUSTER / name for name in ("inference.yaml", "spot-job.yaml")]
    return {
        each["kind"]: each for file in files for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    }


@cache
def schema():
    return json.loads((TESTS / "kubernetes-1.37.json").read_text(encoding="utf-8"))


def mistakes(manifest):
    """What Kubernetes 1.37's own definition of this kind has against a manifest; unknown fields count."""
    kinds = {name.rsplit(".", 1)[1]: ref["$ref"] for ref in schema()["oneOf"] for name in [ref["$ref"]]}
    one = Draft202012Validator({"$ref": kinds[manifest["kind"]], "$defs": schema()["$defs"]})
    return [f"{error.json_path}: {error.message}" for error in one.iter_errors(manifest)]


def test_the_manifests_are_valid():
    kinds = "Deployment Service HorizontalPodAutoscaler PodDisruptionBudget PersistentVolumeClaim Job".split()
    assert list(manifests()) == kinds
    assert {kind: mistakes(manifest) for kind, manifest in manifests().items()} == dict.fromkeys(kinds, [])
    autoscaler = manifests()["HorizontalPodAutoscaler"]
    for spec in ({"maxReplica": 24}, {"maxReplicas": "many"}):  # a field that there is not, no number
        assert mistakes(autoscaler | {"spec": autoscaler["spec"] | spec})


def test_the_manifests_speak_of_each_other():
    deployment, hpa = manifests()["Deployment"], manifests()["HorizontalPodAutoscaler"]["spec"]
    template = deployment["spec"]["template"]
    target = hpa["scaleTargetRef"]
    assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"]}
    labels = template["metadata"]["labels"]
    service, budget = (manifests()[kind]["spec"] for kind in ("Service", "PodDisruptionBudget"))
    assert labels == deployment["spec"]["selector"]["matchLabels"] == service["selector"]
    assert labels == budget["selector"]["matchLabels"]
    ports = [port["name"] for port in template["spec"]["containers"][0]["ports"]]
    assert service["ports"][0]["targetPort"] in ports
    job = manifests()["Job"]["spec"]["template"]["spec"]
    for container in (template["spec"]["containers"][0], job["containers"][0]):
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    claim = manifests()["PersistentVolumeClaim"]["metadata"]["name"]
    assert job["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim
    assert "replicas" not in deployment["spec"]  # the autoscaler's to say; a second apply would set it back


def test_the_page_simulates_what_the_manifest_asks_for():
    import inspect

    hpa = manifests()["HorizontalPodAutoscaler"]["spec"]
    defaults = inspect.signature(module("cluster.autoscale").simulate).parameters
    assert defaults["limits"].default == (hpa["minReplicas"], hpa["maxReplicas"])
    assert defaults["window"].default == hpa["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
    desired = chapter()["desired"]
    target = inspect.signature(desired).parameters["target"].default
    assert str(target) == hpa["metrics"][0]["pods"]["target"]["averageValue"]


def test_the_rule():
    desired = chapter()["desired"]
    # the example of Kubernetes' own blog: 50 replicas at 90 with a target of 75
    assert desired(50, 50 * 90, target=75) == 60
    assert [desired(4, n) for n in (22, 24, 26, 27, 60)] == [4, 4, 4, 5, 10]
    assert (desired(10, 63), desired(6, 63)) == (10, 11)


@cache
def day(wish=None, **how):
    autoscale = module("cluster.autoscale")
    came = autoscale.arrivals(most=8, least=0.4, surge=2.5)
    answer = 2000 * 8 / chapter()["tokens_a_second"](H100, 8)
    surge = (came >= 18 * 3600) & (came < 18.5 * 3600)
    run = autoscale.simulate(came, wish or chapter()["desired"], slots=8, answer=answer, **how)
    return run, answer, float(np.percentile(run.latency[surge], 95)), len(came)


@pytest.mark.slow
def test_the_days_of_the_page():
    (auto, answer, surge, count), (twelve, _, drowned, _), (fourteen, _, held, _) = (
        day(cold=180),
        day(lambda *_: 12, cold=0, limits=(12, 12)),
        day(lambda *_: 14, cold=0, limits=(14, 14)),
    )
    assert len(auto.latency) == count and auto.latency.min() == pytest.approx(answer)
    assert round(answer) == 11 and round(2000 * 125 / chapter()["tokens_a_second"](H100, 125)) == 47
    assert [twelve.gpu_hours, fourteen.gpu_hours] == pytest.approx([12 * 24, 14 * 24], abs=0.1)
    assert [round(fixed.gpu_hours / auto.gpu_hours, 1) for fixed in (twelve, fourteen)] == [1.2, 1.4]
    assert auto.p95() == pytest.approx(answer, rel=0.01) and drowned > 200 > 40 > surge > held > answer


@pytest.mark.full
def test_a_colder_start_makes_a_longer_queue_and_no_replica_a_faster_answer():
    runs = [day(cold=seconds) for seconds in (0, 180, 600)]
    assert runs[0][2] < runs[1][2] < runs[2][2]
    many = day(lambda *_: 60, cold=0, limits=(60, 60))
    assert many[0].latency.max() == pytest.approx(many[1])


@pytest.mark.slow
def test_a_lower_target_holds_the_surge_at_the_price_of_a_fixed_fleet():
    run, answer, surge, _ = day(
        lambda replicas, in_flight: chapter()["desired"](replicas, in_flight, target=4), cold=180
    )
    assert round(run.gpu_hours) == 346 and surge < 1.05 * answer
    usual, _, _, _ = day(cold=180)
    late = usual.latency > 1.05 * answer
    assert late.mean() < 0.01
    autoscale = module("cluster.autoscale")
    waited = autoscale.arrivals(most=8, least=0.4, surge=2.5)[late] - 18 * 3600
    # three minutes of cold start and more than one to drain
    assert 240 < waited[(waited > 0) & (waited < 1800)].max() < 300


def test_the_queue_by_hand():
    """One slot of 10 s and three requests at once: 10, 20 and 30 s. With two replicas
    the third waits for the first.
    """
    simulate, came = module("cluster.autoscale").simulate, np.array([1.0, 1.0, 1.0])
    for replicas, latency in ((1, [10, 20, 30]), (2, [10, 10, 20]), (3, [10, 10, 10])):
        run = simulate(came, lambda *_: replicas, slots=1, answer=10.0, cold=0, limits=(replicas, replicas))  # noqa: B023
        assert run.latency.tolist() == latency


def test_up_at_once_but_by_steps_and_down_after_five_minutes():
    wishes = iter([1, 30, 30, 30, *[2] * 10_000])
    run = module("cluster.autoscale").simulate(
        np.array([1.0]), lambda *_: next(wishes), slots=1, answer=1.0, cold=60
    )
    assert run.replicas[:5].tolist() == [1, 5, 10, 20, 20]  # 4 more, then twice
    falls = int(np.argmax(run.replicas == 2))
    assert run.times[falls] == run.times[3] + 300 + 15 and run.replicas[falls - 1] == 20
    assert run.ready[1] == 1 and run.ready[5] == 5  # cold for 60 s, four syncs


@pytest.mark.slow
def test_the_figures_say_what_they_show():
    figures = module("warplab.figures.choosing")
    names = run_cells("11-choosing", "MINUTES, simulated", **chapter())
    assert "H100 SXM: 80 GB, 3.35 TB/s, $2.69" in figures.shelf(SHELF).alt
    table = figures.pick(SHELF, {"run 70 B": names["run_bytes"](70, 16)}, names["cards_for"])
    assert "H200 SXM 2 for $9.18" in table.alt
    assert "H100 SXM, AWS: 0.36 full" in figures.tokens(SHELF, names["per_million_tokens"]).alt
    assert "best 22 minutes" in figures.intervals(names["simulated"]).alt


def test_the_problems_follow_from_the_registry_and_its_prices():
    names, rent = chapter(), prices.cheapest("h100-sxm").gpu_hour
    assert names["cards_for"]("h100-sxm", 405e9, 10 * vram.kv_cache_bytes(126, 16384, 1000, groups=16)) == 6
    assert 153 < 190 < H100["ridge_bf16"].value  # between both ridges: the A100 is at its peak, the H100 not
    assert 190 * H100["memory_bandwidth"].si / specs.get("a100-sxm")["peak_bf16"].si > 1.94
    assert 10 * rent / (20 * 300 * 3600 / 1e6) == pytest.approx(1.25, abs=0.005)
    each = vram.kv_cache_bytes(32, 4096, 1000, groups=4)  # Llama 3.1 8B's, whose tokens others measured
    most = 488 * H100["memory_bandwidth"].si / (16e9 + 488 * each)
    cents = [100 * rent / 3600 / rate * 1e6 for rate in (9805.6, most)]
    assert 488 == int((H100["memory_capacity"].si - 16e9) / each)
    assert [round(c, 1) for c in cents] == [7.6, 3.7] and 1.9 < cents[0] / cents[1] < 2.2
    assert "the same bound is 3.7 cents" in TEXT and "lower than the 14 cents of the table above" in TEXT
    assert round(100 * names["per_million_tokens"](prices.cheapest("h100-sxm"))) == 14
    queue = (10 - 64 / (2000 * 8 / names["tokens_a_second"](H100, 8))) * 180
    assert queue == pytest.approx(740, abs=5)


def test_memory_bandwidth_and_price_grow_together_from_the_rtx_4090_on():
    keys = "rtx-4090", "a100-sxm", "h100-sxm", "h200-sxm", "b200"
    for fact in "memory_capacity", "memory_bandwidth":
        held = [specs.get(key)[fact].si for key in keys]
        assert sorted(held) == held
    rents = [prices.cheapest(key).gpu_hour for key in keys]
    assert sorted(rents) == rents and rents[0] < prices.cheapest("t4").gpu_hour
