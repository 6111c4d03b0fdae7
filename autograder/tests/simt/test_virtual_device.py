"""The virtual device behaves as a GPU does towards the program that times it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplab.crossing.virtual_device import MAX_CALLS, DeviceTiming, VirtualDevice, VirtualDeviceError, Work

MILLISECOND = DeviceTiming(duration=1e-3, noise=0.0)


@pytest.mark.parametrize(
    "steps, seconds",
    [
        (["launch"], 5e-6),  # it returns after the overhead and not after the work
        (["launch"] * 3 + ["synchronize"], 5e-6 + 3e-3 + 3e-6),
        (["launch", "synchronize", "synchronize"], 5e-6 + 1e-3 + 2 * 3e-6),  # a wait for nothing
    ],
)
def test_what_the_host_waits_for(steps, seconds):
    device = VirtualDevice(MILLISECOND).connect()
    start = device.clock()
    for step in steps:
        getattr(device, step)(*["work"] * (step == "launch"))
    assert device.clock() - start == pytest.approx(seconds + 1e-7)


def test_work_queued_by_others_delays_the_first_launch():
    device = VirtualDevice(DeviceTiming(duration=1e-3, noise=0.0, pending=0.5)).connect()
    device.launch("work")
    device.synchronize()
    assert device.clock() == pytest.approx(0.5 + 1e-3 + 3e-6 + 1e-7)


def test_the_first_launches_are_slow_and_every_seventh_is_disturbed():
    timing = DeviceTiming(
        duration=1.0, noise=0.0, cold_launches=2, cold_factor=20, outlier_every=7, outlier_factor=40
    )
    assert [timing.of_launch(i) for i in range(8)] == [20, 20, 1, 1, 1, 1, 40, 1]


def test_noise_stays_within_its_share():
    rng = np.random.default_rng(0)
    for index, duration, noise in zip(
        range(0, 10_000, 50), rng.uniform(1e-6, 1, 200), rng.uniform(0, 0.5, 200)
    ):
        seconds = DeviceTiming(duration=duration, noise=noise).of_launch(index)
        assert duration * (1 - noise) * 0.999999 <= seconds <= duration * (1 + noise) * 1.000001


def test_events_measure_device_time_alone():
    device = VirtualDevice(MILLISECOND).connect()
    first = device.record()
    device.launch("work")
    last = device.record()
    device.synchronize()
    assert device.elapsed(first, last) == pytest.approx(1e-3, rel=0.02)


def test_an_event_that_has_not_happened_cannot_be_read():
    device = VirtualDevice(MILLISECOND).connect()
    first = device.record()
    device.launch("work")
    last = device.record()
    with pytest.raises(VirtualDeviceError, match="synchronize"):
        device.elapsed(first, last)


@pytest.mark.parametrize("events", [(0, 1), (True, True), ("0", 0), (-1, -1), (None, None)])
def test_events_that_were_never_recorded_are_refused(events):
    with pytest.raises(VirtualDeviceError, match="record"):
        VirtualDevice(MILLISECOND).connect().elapsed(*events)


def test_only_the_given_work_can_be_launched():
    device = VirtualDevice(MILLISECOND).connect()
    for work in ("other", None, 3, lambda: None):
        with pytest.raises(VirtualDeviceError, match="work"):
            device.launch(work)


@pytest.mark.parametrize(
    "message", [None, [], {}, {"op": 3}, {"op": "__init__"}, {"op": "connect"}, {"op": "x" * 999}]
)
def test_a_malformed_message_gets_an_error_and_nothing_else(message):
    assert set(VirtualDevice(MILLISECOND).call(message)) == {"error"}


def test_a_loop_without_end_is_stopped():
    device = VirtualDevice(MILLISECOND).connect()
    with pytest.raises(VirtualDeviceError, match="loop"):
        for _ in range(MAX_CALLS + 1):
            device.clock()


MESSAGES = st.one_of(
    st.sampled_from(
        [{"op": "launch", "work": "work"}, {"op": "synchronize"}, {"op": "clock"}, {"op": "record"}]
    ),
    st.fixed_dictionaries({"op": st.just("elapsed"), "start": st.integers(-1, 5), "end": st.integers(-1, 5)}),
)


@pytest.mark.slow
@given(st.lists(MESSAGES, max_size=40))
def test_any_sequence_is_served_in_json_and_time_never_runs_backwards(messages):
    device = VirtualDevice(MILLISECOND)
    before = device.now
    for message in messages:
        reply = device.call(json.loads(json.dumps(message)))
        assert json.loads(json.dumps(reply)) == reply
        assert device.now >= before
        before = device.now
    assert all(type(count) is float for count in device.counters().values())


# streams, copies, graphs: x goes in, is squared, comes out; a copy of 1,000 numbers and
# the work on them take 1 ms each

PIPELINE = DeviceTiming(
    noise=0.0, launch_overhead=0.0, sync_overhead=0.0, copy_latency=0.0, bandwidth=8_000 / 1e-3
)


def pipeline(size=1000, **options):
    """A device with host arrays x = 0, 1, 2, ... and y = 0."""
    host = {"x": np.arange(size, dtype=float), "y": np.zeros(size)}
    return VirtualDevice(PIPELINE, host, {"square": Work(np.square, 1e-6)}, **options)


def run_in(device, stream_in=0, stream_work=0, stream_out=0):
    """The three steps in the given streams. Returns (x, y, a, b)."""
    x, y = device.host("x"), device.host("y")
    a, b = device.empty(len(x)), device.empty(len(x))
    device.copy(a, x, stream_in)
    device.launch("square", b, a, stream=stream_work)
    device.copy(y, b, stream_out)
    return x, y, a, b


def test_in_one_stream_the_steps_follow_each_other():
    judge = pipeline()
    device = judge.connect()
    _, y, _, _ = run_in(device)
    device.synchronize()
    assert device.clock() == pytest.approx(3e-3, rel=1e-3)
    assert device.read(y).tolist() == [n * n for n in range(1000)]


def test_to_watch_the_clock_is_not_to_wait():
    """The pipeline takes 3 ms. A host that has let 4 ms go by knows of nothing that it is done."""
    device = pipeline().connect()
    _, y, _, _ = run_in(device)
    while device.clock() < 4e-3:
        pass
    assert not device.read(y).any()
    device.synchronize(stream=device.stream())  # of another stream
    assert not device.read(y).any()
    device.synchronize(event=device.record())
    assert device.read(y)[-1] == 999**2


def test_what_waits_for_others_cost_the_judge_is_counted(monkeypatch):
    """Each wait goes through what is not known to be done: many of both are refused in time."""
    monkeypatch.setattr("warplab.crossing.stream_hazards.MAX_COMPARED", 10_000)
    device = VirtualDevice(DeviceTiming(), {"x": np.zeros(1)}).connect()
    free, x = device.stream(), device.host("x")
    for _ in range(100):
        device.copy(device.empty(1), x)
    with pytest.raises(VirtualDeviceError, match="under way at once"):
        for _ in range(200):
            device.synchronize(stream=free)


def test_streams_without_events_are_refused_where_they_share_an_array():
    device = pipeline().connect()
    with pytest.raises(VirtualDeviceError) as refused:
        run_in(device, device.stream(), device.stream(), device.stream())
    assert "copy 1 (device array 1 [0:1000] from x[0:1000]) in stream 1" in str(refused.value)
    assert "launch 1 (device array 2 [0:1000] from device array 1 [0:1000]) in stream 2" in str(refused.value)
    assert "are not ordered, and the first writes what the second reads, elements 0 to 1,000" in str(
        refused.value
    )


def shares(device, first, second):
    """Two streams, and a copy into each of two device arrays, which are one or lie in one."""
    x, a = device.host("x"), device.empty(1000)
    streams = device.stream(), device.stream()
    device.copy(a[first], x[first], streams[0])
    yield streams
    device.copy(a[second], x[second], streams[1])
    yield None


@pytest.mark.parametrize(
    "order, refused",
    [
        (lambda device, first, second: None, True),
        (lambda device, first, second: device.wait(device.record(first), second), False),
        (lambda device, first, second: device.wait(device.record(second), first), True),
        (lambda device, first, second: device.synchronize(), False),
        (lambda device, first, second: device.synchronize(stream=first), False),
        (lambda device, first, second: device.synchronize(stream=second), True),
        (lambda device, first, second: device.synchronize(event=device.record(first)), False),
    ],
)
def test_what_puts_two_streams_in_order(order, refused):
    device = pipeline().connect()
    steps = shares(device, slice(0, 600), slice(599, 1000))
    order(device, *next(steps))
    if refused:
        with pytest.raises(VirtualDeviceError, match="both write to one array, elements 599 to 600"):
            next(steps)
    else:
        next(steps)


def test_streams_may_share_what_both_read_and_take_parts_of_one_array():
    device = pipeline().connect()
    steps = shares(device, slice(0, 600), slice(600, 1000))
    next(steps)
    next(steps)


def test_an_event_says_nothing_of_what_came_after_it():
    device = pipeline().connect()
    x, a, first, second = device.host("x"), device.empty(1000), device.stream(), device.stream()
    early = device.record(first)
    device.copy(a, x, first)
    device.wait(early, second)
    with pytest.raises(VirtualDeviceError, match="the first writes what the second reads"):
        device.launch("square", device.empty(1000), a, stream=second)


def test_a_replayed_graph_comes_after_its_stream_and_before_what_follows():
    device = pipeline().connect()
    x, a, b, inner = device.host("x"), device.empty(1000), device.empty(1000), device.stream()
    device.copy(a, x)
    device.capture()
    device.launch("square", b, a, stream=inner)
    graph = device.end_capture()
    device.replay(graph)
    device.copy(device.host("y"), b)
    device.synchronize()
    assert device.read(device.host("y"))[3] == 9


def test_too_many_parts_under_way_are_refused(monkeypatch):
    monkeypatch.setattr("warplab.crossing.stream_hazards.MAX_COMPARED", 10_000)
    device = pipeline().connect()
    a = device.empty(1000)
    with pytest.raises(VirtualDeviceError, match="under way at once"):
        for k in range(5_000):
            device.launch("square", device.empty(1), a[k % 1000 : k % 1000 + 1], stream=0)
            device.copy(device.host("y")[:1], a[k % 1000 : k % 1000 + 1], stream=0)


def test_synchronising_with_one_stream_does_not_wait_for_another():
    device = pipeline().connect()
    x, first, second = device.host("x"), device.stream(), device.stream()
    device.copy(device.empty(1000), x, first)
    done = device.record(first)
    device.launch("square", device.empty(1000), device.empty(1000), stream=second)
    device.copy(device.empty(1000), x, first)
    device.synchronize(event=done)
    assert device.clock() == pytest.approx(1e-3, rel=1e-3)
    device.synchronize(stream=second)
    assert device.clock() == pytest.approx(1e-3, rel=1e-3)
    device.synchronize()
    assert device.clock() == pytest.approx(2e-3, rel=1e-3)


def test_one_engine_serves_in_the_order_of_issue():
    """Two copies in, in two streams, take 2 ms: there is one engine for that direction."""
    device = pipeline().connect()
    x = device.host("x")
    for stream in (device.stream(), device.stream()):
        device.copy(device.empty(1000), x, stream)
    device.synchronize()
    assert device.clock() == pytest.approx(2e-3, rel=1e-3)


def test_a_part_of_an_array_moves_by_itself():
    device = pipeline().connect()
    x, y = device.host("x"), device.host("y")
    a = device.empty(10)
    device.copy(a, x[20:30])
    device.copy(y[5:15], a)
    device.synchronize()
    assert device.read(y)[:16].tolist() == [0] * 5 + list(range(20, 30)) + [0]
    assert device.read(y[5:7]).tolist() == [20, 21]


def test_a_graph_costs_the_host_one_launch_however_often_it_is_replayed():
    judge = VirtualDevice(DeviceTiming(duration=1e-6, noise=0.0, launch_overhead=5e-6, sync_overhead=0.0))
    device = judge.connect()
    device.capture()
    for _ in range(10):
        device.launch("work")
    graph = device.end_capture()
    assert judge.counts["launches"] == 0, "nothing runs while it is captured"
    start = device.clock()
    for _ in range(4):
        device.replay(graph)
    device.synchronize()
    assert device.clock() - start == pytest.approx(4 * 10e-6 + 5e-6, rel=0.01), (
        "10 launches of 1 us outlast one overhead of 5 us"
    )
    assert judge.counts["launches"] == 40


@pytest.mark.parametrize("what", ["synchronize", "capture"])
def test_while_a_graph_is_captured_the_host_cannot_wait(what):
    device = pipeline().connect()
    device.capture()
    with pytest.raises(VirtualDeviceError, match="end_capture"):
        getattr(device, what)()


def test_an_array_for_the_device_alone_cannot_be_read_by_the_host():
    device = pipeline(unread=("x",)).connect()
    with pytest.raises(VirtualDeviceError, match="for the device alone"):
        device.read(device.host("x"))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda d: d.copy(d.host("x"), d.host("y")), "from host to device"),
        (lambda d: d.copy(d.empty(3), d.host("x")), "1,000 elements to 3"),
        (lambda d: d.copy(d.empty(1000), d.host("x"), stream=7), "no stream 7"),
        (lambda d: d.launch("cube", d.empty(3), d.empty(3)), "no work 'cube'; use square"),
        (lambda d: d.launch("square", d.empty(3), d.empty(4)), "one length, got 3, 4"),
        (lambda d: d.launch("square", d.host("x"), d.empty(1000)), "on the device is needed"),
        (lambda d: d.launch("square", [0, 0, 10], d.empty(10)), "is needed here"),
        (lambda d: d.read(d.empty(3)), "on the host is needed"),
        (lambda d: d.read(d.host("x")[5:5]), "lie outside"),
        (lambda d: d.host("z"), "no host array 'z'; this device has x, y"),
        (lambda d: d.empty(0), "positive number"),
        (lambda d: d.empty(10**9), "2,097,152 in all"),
        (lambda d: d.launch("square", *(d.empty(3) for _ in range(5))), "does not read 4 arrays"),
        (lambda d: [d.stream() for _ in range(1000)], "1,000 streams"),
        (lambda d: d.replay(0), "end_capture"),
        (lambda d: d.end_capture(), "needs a capture"),
        (lambda d: d.wait(0, 0), "from record"),
        (lambda d: d.host("x")[0], "start:stop"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(call, why):
    with pytest.raises(VirtualDeviceError, match=why):
        call(pipeline().connect())


def test_the_judge_does_not_work_without_end():
    device = pipeline(size=1_000_000).connect()
    a, b = device.empty(1_000_000), device.empty(1_000_000)
    with pytest.raises(VirtualDeviceError, match="100,000,000 elements"):
        for _ in range(200):
            device.launch("square", b, a)
