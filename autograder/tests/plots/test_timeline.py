"""timeline(): rows, gaps and shares of runs whose times can be worked out by hand."""

import json

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import warplab
from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work
from warplab.plots import timeline as module
from warplab.plots.timeline import TimelineBar, gaps, of_trace, told

MS = 1e-3


def squared(pieces, apart):
    """Pieces that take 2 ms to copy in, 3 to square, 2 to copy out; in one stream or each in its own."""
    host = {"in": np.arange(1000.0 * pieces), "out": np.zeros(1000 * pieces)}
    works = {"square": Work(np.square, seconds_per_element=3e-6)}
    costs = {"launch_overhead": 0.0, "sync_overhead": 0.0, "copy_latency": 0.0}
    owner = VirtualDevice(DeviceTiming(bandwidth=8000 / 2e-3, **costs), host, works)
    device = owner.connect()
    for i in range(0, 1000 * pieces, 1000):
        stream = device.stream() if apart else 0
        here, done = device.empty(1000), device.empty(1000)
        device.copy(here, device.host("in")[i : i + 1000], stream)
        device.launch("square", done, here, stream=stream)
        device.copy(device.host("out")[i : i + 1000], done, stream)
    device.synchronize()
    return owner


@pytest.mark.slow
def test_one_stream_computes_three_of_seven_milliseconds():
    figure = warplab.timeline(squared(4, apart=False), caption="Copies and work take turns.")
    # 4 x 3 of 28; a copy in, three times a copy out and one in, a copy out
    assert "rows host, stream 0. A kernel runs 43% of 28.0 ms." in figure.alt
    assert "Gaps: copy out and copy in 43%, copy in 7%, copy out 7%." in figure.alt
    assert figure.caption == "Copies and work take turns."
    assert "synchronize" in figure.body and "square" in figure.body and "launch" not in figure.body


@pytest.mark.slow
def test_streams_of_their_own_leave_the_first_copy_and_the_last():
    figure = warplab.timeline(squared(4, apart=True), uses=16 / 132)
    assert "A kernel runs 75% of 16.0 ms and uses 12% of the SMs: 9% of what there is." in figure.alt
    assert figure.alt.endswith("Gaps: copy in 12%, copy out 12%.") and "stream 4" in figure.body


@pytest.mark.slow
def test_a_device_that_is_always_busy_may_use_an_eighth_of_what_it_is():
    owner = VirtualDevice(DeviceTiming(duration=1e-3, noise=0, launch_overhead=0.0, sync_overhead=0.0))
    device = owner.connect()
    for _ in range(3):
        device.launch("work")
    device.synchronize()
    alt = warplab.timeline(owner, uses=0.125).alt
    assert alt.endswith("A kernel runs 100% of 3.00 ms and uses 12% of the SMs: 12% of what there is.")
    assert warplab.timeline(owner, uses=8).alt.endswith("and uses 100% of the SMs: 100% of what there is.")


@pytest.mark.slow
def test_short_kernels_wait_for_their_launches():
    owner = VirtualDevice(DeviceTiming(duration=2e-6, noise=0, launch_overhead=5e-6, sync_overhead=3e-6))
    device = owner.connect()
    for _ in range(20):
        device.launch("work")
    device.synchronize()
    # queued after 100 us, done after 102, seen after 105; 40 us of work
    assert owner.host_spans[-1] == ("wait", "host", pytest.approx(100e-6), pytest.approx(5e-6), "synchronize")
    alt = warplab.timeline(owner).alt
    assert "A kernel runs 38% of 105 µs. Gaps: host: launch 59%, host: synchronize 3%." in alt


def test_gaps_are_named_by_copies_before_calls_of_the_host():
    found = [
        TimelineBar("host", "call", "launch", 0.0, 5.0),
        TimelineBar(1, "kernel", "k", 1.0, 2.0),
        TimelineBar(1, "kernel", "k", 1.5, 3.0),
        TimelineBar(2, "copy in", "in", 4.0, 6.0),
        TimelineBar(1, "kernel", "k", 6.0, 8.0),
        TimelineBar(2, "copy out", "out", 9.5, 10.0),
    ]
    named = [(gap.start, gap.end, gap.name) for gap in gaps(found, "kernel")]
    assert named == [(0, 1, "host: launch"), (3, 6, "copy in"), (8, 10, "copy out")]
    assert told(found, "kernel") == (
        "A kernel runs 40% of 10.0 s. Gaps: copy in 30%, copy out 20%, host: launch 10%."
    )


def event(cat, name, tid, start, took, **about):
    return {"ph": "X", "cat": cat, "name": name, "tid": tid, "ts": 5000 + start, "dur": took, "args": about}


INVENTED = [  # a trace as torch's profiler writes one; these numbers were invented for a test
    event("cpu_op", "aten::linear", 9, 0, 100),
    event("cpu_op", "aten::addmm", 9, 10, 80),
    event("cuda_runtime", "cudaLaunchKernel", 9, 20, 10),
    event("cpu_op", "aten::relu", 9, 120, 30),
    event("user_annotation", "step", 9, 0, 400),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 50, 50, stream=20),
    event("kernel", "sm80_gemm", 7, 100, 200, stream=7, **{"blocks per SM": 0.25}),
    event("kernel", "relu_kernel", 7, 300, 100, stream=7, **{"blocks per SM": 4.0}),
    {"ph": "i", "cat": "cpu_op", "name": "[memory]", "ts": 5000, "dur": 0},
]


def test_a_trace_with_kernels_has_its_streams_and_says_how_much_they_use(tmp_path):
    found = of_trace(INVENTED)
    assert [(s.row, s.kind, s.name) for s in found] == [
        ("host 1", "call", "linear"),
        (20, "copy in", "Memcpy HtoD (Pinned -> Device)"),
        (7, "kernel", "sm80_gemm"),
        ("host 1", "call", "relu"),
        (7, "kernel", "relu_kernel"),
    ]
    path = tmp_path / "invented.json"
    path.write_text(json.dumps({"traceEvents": INVENTED}))
    alt = warplab.timeline(path).alt
    # 300 of 400 us; 200 of them on a quarter of the SMs, 100 on all: (50 + 100) / 300
    assert "rows host 1, stream 7, stream 20. A kernel runs 75% of 400 µs and uses 50% of the SMs" in alt
    assert alt.endswith("38% of what there is. Gaps: copy in 25%.")


def test_torchs_profiler_is_drawn_on_a_cpu_too():
    weight = torch.ones(64, 64)
    with profile(activities=[ProfilerActivity.CPU]) as run:
        (weight @ weight).relu()
    figure = warplab.timeline(run)
    assert figure.alt.startswith("A timeline with the rows host 1. An operator runs ")
    assert figure.narrow is not None and figure.narrow.body != figure.body


def test_a_run_in_which_nothing_took_time_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing in this run took time"):
        warplab.timeline(VirtualDevice(DeviceTiming()))
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    with pytest.raises(ValueError, match="nothing in this run took time"):
        warplab.timeline(tmp_path / "empty.json")


def test_every_kind_has_a_colour():
    assert set(module.KINDS.values()) == set(module.COLOURS)


def test_what_is_no_run_is_told_with_what_is_one():
    with pytest.raises(TypeError, match=r"a VirtualDevice \(itself, not what connect\(\) gives\).* got int"):
        warplab.timeline(3)
