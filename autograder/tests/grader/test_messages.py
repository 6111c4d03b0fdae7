"""What goes over a channel arrives as it was sent, and whatever else comes is refused with a reason."""

import io
import json
import socket

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.sandbox import messages
from autograder.sandbox.messages import (
    Allowance,
    Answer,
    BadMessage,
    Call,
    Cell,
    Channel,
    Closed,
    Done,
    Executed,
    Question,
    decode_array,
    encode,
)


@pytest.fixture
def ends():
    """(our Channel, the raw socket at the other end)."""
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    yield Channel(ours), theirs
    ours.close()
    theirs.close()


def arrives(ends, message):
    channel, theirs = ends
    theirs.sendall(b"".join(encode(message)))
    return channel.receive((type(message),))


def refused(ends, data, *allowed):
    channel, theirs = ends
    theirs.sendall(data)
    with pytest.raises(BadMessage) as caught:
        channel.receive(allowed or (Executed, Answer))
    return str(caught.value)


def line(body, arrays=()):
    return json.dumps({"body": body, "arrays": [len(a) for a in arrays]}).encode() + b"\n" + b"".join(arrays)


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def test_arrays_and_numbers_arrive_as_they_were_sent(ends):
    data = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": [1, 2.5, "x", None, True],
        "c": np.float64(2),
        "d": np.array(7),
        "e": (1, 2),
    }
    back = arrives(ends, Answer(data)).data
    assert back["a"].dtype == np.float32 and back["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert back["b"] == [1, 2.5, "x", None, True] and back["c"] == 2 and type(back["c"]) is float
    assert back["d"].shape == () and back["d"] == 7 and back["e"] == [1, 2]


def test_what_is_not_finite_arrives_too(ends):
    back = arrives(ends, Call({"x": [float("nan"), float("inf"), -float("inf")]})).data["x"]
    assert np.isnan(back[0]) and back[1:] == [float("inf"), -float("inf")]


def test_messages_keep_their_order_however_they_are_cut(ends):
    channel, theirs = ends
    data = b"".join(
        part for number in range(3) for part in encode(Answer({"n": number, "x": np.full(number, number)}))
    )
    for byte in range(0, len(data), 7):
        theirs.sendall(data[byte : byte + 7])
    assert [channel.receive((Answer,)).data["n"] for _ in range(3)] == [0, 1, 2]
    assert not channel.more()


@pytest.mark.parametrize(
    "value", [np.array([object()]), np.array([1j]), object(), {1, 2}, np.array(["text"]), b"bytes"]
)
def test_what_is_not_plain_is_not_sent(value):
    with pytest.raises(BadMessage, match="cannot be sent"):
        encode(Answer({"x": value}))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"type": "Executed", "error": 5}, "Executed: Expected `str | null`, got `int` - at `$.error`"),
        ({"type": "Executed"}, "missing required field `error`"),
        ({"type": "Executed", "error": "x" * 2001}, "length <= 2000"),
        ({"type": "Executed", "error": None, "score": 10}, "unknown field `score`"),
        ({"type": "Answer", "data": []}, "Answer: Expected `object`, got `array` - at `$.data`"),
        ({"type": "Answer", "data": {"x": {"__array__": 0}}}, "names an array"),
        ({"type": "Answer", "data": {"x": {"__array__": True}}}, "names an array"),
        (
            {"type": "Done", "outputs": {}, "counters": {}, "modified": [], "error": None},
            "expected Answer or Executed, got 'Done'",
        ),
        ({"type": "__init__"}, "expected"),
        ({"type": ["Executed"]}, "expected"),
        (None, "Expected `object`"),
        ([1], "Expected `object`"),
    ],
)
def test_a_message_of_another_shape_is_refused(ends, body, why):
    assert why in refused(ends, line(body))


@pytest.mark.parametrize("kind", [Answer, Call])
def test_an_array_in_the_place_of_an_object_is_refused(ends, kind):
    """msgspec would ask it for its keys."""
    body = {"type": kind.__name__, "data": {"__array__": 0}}
    assert kind.__name__ in refused(ends, line(body, [npy(np.zeros(3))]), kind)


@pytest.mark.parametrize(
    "body",
    [
        {"outputs": {"out": [1.0]}},
        {"outputs": {"out": {"__array__": 1}}},
        {"outputs": {"__array__": 0}},
        {"outputs": []},
        {"counters": {"launches": "1"}},
        {"counters": {"launches": True}},
        {"counters": {"launches": 10**400}},
        {"counters": {"launches": {"__array__": 0}}},
        {"modified": [0]},
        {"modified": "x"},
        {"access": []},
        {"findings": {}},
        {"more": 1},
    ],
)
def test_what_an_executor_cannot_have_done_is_refused(ends, body):
    right = {"type": "Done", "outputs": {"out": {"__array__": 0}}, "counters": {"launches": 1.0}}
    right |= {"modified": ["x"], "error": None, "access": {}, "findings": []}
    array = npy(np.zeros(3))
    ends[1].sendall(line(right, [array]))
    assert ends[0].receive((Done,)).counters == {"launches": 1.0}
    assert refused(ends, line(right | body, [array]), Done)


@pytest.mark.parametrize(
    "data",
    [
        b"done\n",
        b"\xff\xfe\n",
        b"5\n",
        b"[]\n",
        b'{"body": {}}\n',
        b'{"body": {}, "arrays": 5}\n',
        b'{"body": {}, "arrays": [-1]}\n',
        b'{"body": {}, "arrays": [true]}\n',
        b'{"body": {"type": "Executed", "error": null}, "arrays": [1]}\n',
        b'{"body": {"type": "Answer", "data": {}}, "arrays": [2000000000]}\n',
        b'{"body": {"type": "Executed", "error": NaN}, "arrays": []}\n',
        b'{"body": ' + b"[" * 100_000 + b"\n",
    ],
)
def test_what_is_no_message_is_refused(ends, data):
    assert refused(ends, data)


@pytest.mark.parametrize("outer", ["[{}]", '{{"a":{}}}'])
def test_a_message_nested_deeper_than_any_of_ours_is_refused(ends, outer):
    """The body, its data and the list in it are three; 29 in that are the most."""
    deep = "0"
    for _ in range(29):
        deep = outer.format(deep)
    text = '{"body": {"type": "Answer", "data": {"a": [%s]}}, "arrays": []}\n'
    ends[1].sendall((text % deep).encode())
    assert ends[0].receive((Answer,)).data["a"]
    assert "32 deep" in refused(ends, (text % outer.format(deep)).encode())


def test_a_line_without_end_is_refused(ends, monkeypatch):
    monkeypatch.setitem(messages.ROOM, Answer, messages.Room(text=100 << 10))
    assert "longer than 100 KiB" in refused(ends, b"[" * (101 << 10))
    monkeypatch.setitem(messages.ROOM, Answer, messages.Room())
    assert "longer than 64 KiB" in refused(ends, b"[" * 100)


def test_a_step_may_send_so_much_and_no_more(ends):
    everything = Allowance(10_000, 4)
    ends[0].allowances = (everything, Allowance(10_000, 2))
    for _ in range(2):
        arrives(ends, Executed(None))
    assert "more messages" in refused(ends, line({"type": "Executed", "error": None}))
    ends[0].allowances = (everything, Allowance(100, 9))
    assert "more data" in refused(ends, b"x" * 101)
    assert everything.messages == 1 and everything.bytes == 10_000 - 3 * 60 - 101  # both were spent by all


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (npy(np.array([{}], dtype=object), allow_pickle=True), "object"),
        (npy(np.array([1j])), "complex"),
        (npy(np.zeros(2, "f4,f4")), "not an array"),
        (npy(np.zeros(3)).replace(b"<f8", b"<f9"), "no dtype"),
        (npy(np.zeros(3))[:-1], "disagree"),
        (npy(np.zeros(3)) + b"x", "disagree"),
        (npy(np.zeros((2, 3), order="F")), "C order"),
        (b"\x93NUMPY\x02\x00", "version"),
        (b"", "not an array"),
        (b"junk" * 10, "not an array"),
        (b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os')._exit(1)".ljust(31) + b"\n", "not an array"),
    ],
)
def test_bytes_that_are_not_exactly_one_array_of_numbers_are_refused(data, why):
    with pytest.raises(BadMessage, match=why):
        decode_array(np.frombuffer(data, np.uint8))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(data):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data + b"\n")
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises((BadMessage, Closed)):
            Channel(ours).receive((Executed, Answer, Question, Cell, Done))


def test_long_errors_are_cut(ends):
    assert len(arrives(ends, Executed("x" * 10_000)).error) == messages.MAX_TEXT


def test_the_end_of_the_channel_is_told(ends):
    ends[1].close()
    with pytest.raises(Closed):
        ends[0].receive((Executed,))
