"""The virtual device behaves as a GPU does towards the program that times it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplab.virtual_device import MAX_CALLS, DeviceError, Timing, VirtualDevice

MILLISECOND = Timing(duration=1e-3, noise=0.0)


def test_a_launch_returns_after_the_overhead_and_not_after_the_work():
    device = VirtualDevice(MILLISECOND).connect()
    start = device.clock()
    device.launch("work")
    assert device.clock() - start == pytest.approx(5e-6 + 1e-7)


def test_synchronize_waits_for_all_launches():
    device = VirtualDevice(MILLISECOND).connect()
    start = device.clock()
    for _ in range(3):
        device.launch("work")
    device.synchronize()
    assert device.clock() - start == pytest.approx(5e-6 + 3e-3 + 3e-6 + 1e-7)


def test_a_second_wait_costs_only_its_overhead():
    device = VirtualDevice(MILLISECOND).connect()
    device.launch("work")
    device.synchronize()
    start = device.clock()
    device.synchronize()
    assert device.clock() - start == pytest.approx(3e-6 + 1e-7)


def test_work_queued_by_others_delays_the_first_launch():
    device = VirtualDevice(Timing(duration=1e-3, noise=0.0, pending=0.5)).connect()
    device.launch("work")
    device.synchronize()
    assert device.clock() == pytest.approx(0.5 + 1e-3 + 3e-6 + 1e-7)


def test_the_first_launches_are_slow_and_every_seventh_is_disturbed():
    timing = Timing(duration=1.0, noise=0.0, cold_launches=2, cold_factor=20, outlier_every=7, outlier_factor=40)
    assert [timing.of_launch(i) for i in range(8)] == [20, 20, 1, 1, 1, 1, 40, 1]


@given(st.integers(0, 10_000), st.floats(1e-6, 1.0), st.floats(0, 0.5))
def test_noise_stays_within_its_share(index, duration, noise):
    seconds = Timing(duration=duration, noise=noise).of_launch(index)
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
    with pytest.raises(DeviceError, match="synchronize"):
        device.elapsed(first, last)


@pytest.mark.parametrize("events", [(0, 1), (True, True), ("0", 0), (-1, -1), (None, None)])
def test_events_that_were_never_recorded_are_refused(events):
    with pytest.raises(DeviceError, match="record"):
        VirtualDevice(MILLISECOND).connect().elapsed(*events)


def test_only_the_given_work_can_be_launched():
    device = VirtualDevice(MILLISECOND).connect()
    for work in ("other", None, 3, lambda: None):
        with pytest.raises(DeviceError, match="work"):
            device.launch(work)


@pytest.mark.parametrize("message", [None, [], {}, {"op": 3}, {"op": "__init__"}, {"op": "connect"}, {"op": "x" * 999}])
def test_a_malformed_message_gets_an_error_and_nothing_else(message):
    assert set(VirtualDevice(MILLISECOND).call(message)) == {"error"}


def test_a_loop_without_end_is_stopped():
    device = VirtualDevice(MILLISECOND).connect()
    with pytest.raises(DeviceError, match="loop"):
        for _ in range(MAX_CALLS + 1):
            device.clock()


MESSAGES = st.one_of(
    st.sampled_from([{"op": "launch", "work": "work"}, {"op": "synchronize"}, {"op": "clock"}, {"op": "record"}]),
    st.fixed_dictionaries({"op": st.just("elapsed"), "start": st.integers(-1, 5), "end": st.integers(-1, 5)}),
)


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
