"""What a hostile process may send, at each place of a right message in turn: it is
refused in a sentence, and never an error of the judge's.

An error of the judge's leaves a submission ungraded as "a fault in the task"; a student
who can cause one chooses not to be graded.
"""

import contextlib
import copy
import json
import resource
import socket
import threading
import time
from collections import Counter
from random import Random

import crossing_examples  # noqa: F401 - registers the tasks example/...
import numpy as np
import pytest

from autograder.judge import attempts
from autograder.judge.judge import legible
from autograder.release.source import stable_json
from autograder.sandbox import messages
from autograder.sandbox.messages import (
    ROOM,
    Allowance,
    Answer,
    BadMessage,
    Call,
    Channel,
    Closed,
    Done,
    Failure,
    Reply,
    Room,
    RunOrder,
    decode_array,
    encode,
)
from warplab import crossing
from warplab.crossing import ranks
from warplab.crossing.costliest import checked_access, request_of
from warplab.crossing.router import Router
from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work
from warplab.plots import warp_request as lanes
from warplab.tasks import registry, scoring

JUNK = (
    None,
    True,
    -1,
    7,
    2**70,
    10**400,
    1.5,
    float("nan"),
    "x",
    "#0",
    [],
    {},
    [[]],
    {"a": 1},
    ["float32", 1],
    np.zeros(3),
    np.zeros(0),
    np.zeros((2, 2)),
    np.zeros(()),
    np.zeros(2, bool),
    np.zeros(2, np.float16),
    np.zeros(2, complex),
    [np.zeros(2)],
)
KERNEL = {"name": "k", "entry": "k", "modules": [".version"], "abi": "c"}
STEPS = [["launch", 0, [1], [32], 0, ["#0", ["int64", 3]]], ["fill", "#0", 0.0], ["copy", "#0", "#0"]]
ANSWERS = {
    "example/axpy": {"kernel": KERNEL, "shape": [[1, 1], [32, 1], 0]},
    "example/total": {
        "kernels": [KERNEL],
        "buffers": {"#0": {"shape": [4], "dtype": "float32"}},
        "steps": STEPS,
    },
    "example/gelu": {
        "outputs": {"y": np.zeros(3)},
        "kept": [["", {"tuple": [{"tensor": np.zeros(3), "input": True}]}], ["n", {"plain": [1, {"a": 2}]}]],
        "modified": ["x"],
    },
    "ps01/launch_plan": {
        "outputs": {"grid": np.zeros(2, int), "idle": np.zeros((), int)},
        "modified": ["width"],
    },
}
POSTS = [
    {"op": "send", "peer": 1, "tag": 0, "array": np.zeros(4)},
    {"op": "recv", "peer": 1, "tag": 0},
    {"op": "all_reduce", "reduce": "avg", "array": np.zeros(4)},
    {"op": "broadcast", "root": 0, "array": np.zeros(4)},
    {"op": "barrier"},
]
CALLS = (  # in this order each is right
    {"op": "stream"},
    {"op": "host", "name": "x"},
    {"op": "empty", "size": 4},
    {"op": "copy", "target": [2, 0, 4], "source": [0, 0, 4], "stream": 1},
    {"op": "launch", "work": "square", "arrays": [[2, 0, 4], [2, 0, 4]], "stream": 1},
    {"op": "record", "stream": 1},
    {"op": "wait", "event": 0, "stream": 0},
    {"op": "synchronize", "stream": None, "event": 0},
    {"op": "synchronize", "stream": 1, "event": None},
    {"op": "elapsed", "start": 0, "end": 0},
    {"op": "read", "array": [1, 0, 4]},
    {"op": "clock"},
    {"op": "capture"},
    {"op": "launch", "work": "square", "arrays": [[2, 0, 4], [2, 0, 4]], "stream": 1},
    {"op": "end_capture"},
    {"op": "replay", "graph": 0, "stream": 0},
)
ACT = {"thread": [1, 0, 0], "block": [0, 0, 0], "does": "reads", "what": "x[3]", "file": 7, "line": 12}
ACCESS = {
    "line": 3,
    "file": 1,
    "width": 4,
    "requests": 2,
    "counted": 8,
    "wasted": 4,
    "space": "global",
    "kind": "read",
    "array": "x",
    "lanes": [0, 1],
    "offsets": [0, 4],
}


def damaged(value):
    """Copies of a message, each with one piece of junk in one place."""
    for path in places(value):
        for junk in JUNK:
            yield put(copy.deepcopy(value), path, junk)


def places(value, path=()):
    yield path
    items = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def put(value, path, junk):
    if not path:
        return junk
    value[path[0]] = put(value[path[0]], path[1:], junk)
    return value


def whole(task, case, answer):
    """What the judge finishes with: of a task in two halves the second one as well."""
    if not crossing.has_halves(task):
        return answer
    crossing.CROSSINGS[task.crossing].second(task, case, answer)
    return [answer, {"outputs": {"grad_x": np.zeros(3)}}]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_judged_or_refused(name):
    task = registry.get(name)
    case = task.cases(3)[0]
    for answer in damaged(ANSWERS[name]):
        try:
            done = crossing.finish(task, case, whole(task, case, answer), None)
        except crossing.Refused:
            continue
        if type(done) is crossing.Order:
            done.plain()
        else:
            scoring.judge(task, [case], [done.of(case)])


def test_a_router_answers_or_refuses():
    right = {"posts": POSTS, "wait": 0}
    for message in damaged(right):
        router = Router(2)
        for rank, sent in ((0, message), (1, copy.deepcopy(right)), (1, message)):
            assert all(set(reply) <= {"array", "done", "error"} for _, reply in router.call(rank, sent))
        router.leave(0)
        assert set(router.counters()) == {
            "ranks.bytes",
            "ranks.bytes_of_one",
            "ranks.messages",
            "ranks.collectives",
        }


@pytest.mark.slow
@pytest.mark.parametrize("works", [{"square": Work(np.square, 1e-6)}, None], ids=["works", "one work"])
def test_a_device_answers_or_refuses(works):
    """Every place of every message, with everything before it as it should be; then the rest of them."""
    right = [message for message in CALLS if works or "arrays" not in message]
    right = [message for message in right if works or message["op"] != "launch"]
    right += [] if works else [{"op": "launch", "work": "work", "stream": 0}]
    refused = 0
    for number, message in enumerate(right):
        for damage in (*damaged(message), *JUNK, *(message | {name: 10**5000} for name in message)):
            device = VirtualDevice(DeviceTiming(), {"x": np.zeros(4), "y": np.zeros(4)}, works)
            before = [device.call(copy.deepcopy(one)) for one in right[:number]]
            assert not any("error" in reply for reply in before), before
            reply = device.call(damage)
            assert type(reply) is dict
            refused += "error" in reply
            for one in right[number:]:
                assert type(device.call(copy.deepcopy(one))) is dict
            assert all(np.isfinite(count) for count in device.counters().values())
    assert refused > 100


COMPARED = [name for name in registry.names() if registry.get(name).crossing not in crossing.EXECUTED]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.filterwarnings("ignore:.*encountered in cast:RuntimeWarning")
def test_results_of_every_task_are_judged_or_refused(name):
    """Each result, replaced by junk, cast to each type and reshaped: a wrong answer, and never a fault."""
    task = registry.get(name)
    case = task.cases(3)[0]
    right = {key: np.asarray(value) for key, value in task.expected(case)[0].items()}
    for key, value in right.items():
        casts = [value.astype(kind) for kind in ("?", "b", "u8", "f2", "f4", "f8", "c16")]
        shapes = [value[None], value.reshape(-1), value.reshape(-1)[:1], value.reshape(-1)[:0], value.T]
        for junk in (*JUNK, *casts, *shapes):
            outputs = right | {key: junk}
            answer = {"outputs": outputs, "modified": []}
            if crossing.has_halves(task):
                answer = [
                    {"outputs": {"y": outputs.pop("y")}, "kept": [], "modified": []},
                    {"outputs": outputs},
                ]
            host = crossing.host(task, case)
            try:
                done = crossing.finish(task, case, answer, host)
            except crossing.Refused:
                continue
            scoring.judge(task, [case], [done.of(case)])


def test_a_record_of_an_access_is_drawn_or_refused():
    drawn = 0
    for data in damaged(ACCESS):
        try:
            access = checked_access(data, {"x": None}) if type(data) is dict else {}
        except crossing.Refused:
            continue
        if access:
            assert len(lanes.svg(request_of(access), "a picture")) < 100_000
            drawn += 1
    assert drawn >= 6  # with 7 for each of its numbers nothing is wrong


@pytest.mark.parametrize(
    "shape",
    [f"({2**70}, 0)", f"({2**38}, {2**38}, 0)", "(False, True)", "(-1, 0)", f"({2**28}, 0)", "(0x2,)", "(2)"],
)
def test_an_empty_array_of_an_impossible_shape_is_refused(shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(BadMessage, match="shape"):
        decode_array(np.frombuffer(data, np.uint8))


def arrived(line, kind):
    """What the judge makes of one line of a student's process."""
    return heard(line + b"\n", (kind,))


def test_half_a_character_becomes_a_question_mark():
    line = json.dumps(
        {"body": {"type": "Failure", "error": "\ud800 is half of \U0001f98a"}, "arrays": []}
    ).encode()
    assert arrived(line, Failure).error == "? is half of \U0001f98a"


@pytest.mark.parametrize("value", [[], {}, 0.5, "a,b", None])
def test_a_line_of_a_million_values_is_refused_before_it_is_read(value, monkeypatch):
    monkeypatch.setitem(ROOM, Answer, Room(values=100))
    few, many = (
        json.dumps({"body": {"type": "Answer", "data": {"a": [value] * n}}, "arrays": []}).encode()
        for n in (40, 101)
    )
    assert arrived(few, Answer).data["a"] == [value] * 40
    monkeypatch.setattr("autograder.sandbox.messages.json", None)
    with pytest.raises(BadMessage, match="values"):
        arrived(many, Answer)


def test_results_that_would_fill_the_judges_memory_are_refused():
    task = registry.get("ps01/launch_plan")
    case = task.cases(3)[0]
    for outputs, why in (
        ({"grid": [1, 1]}, "Expected `numpy.ndarray`, got `list`"),
        ({"junk": np.zeros(1 << 19), "idle": np.zeros(1)}, "4,194,312 bytes"),
    ):
        with pytest.raises(crossing.Refused, match=why):
            crossing.finish(task, case, {"outputs": outputs}, None)


def test_text_that_steers_a_terminal_or_turns_a_line_around_is_marked():
    assert legible("a\x1b[2J \u202eb\n\tc\x00 \u2713 \ud800") == "a\ufffd[2J \ufffdb\n\tc\ufffd \u2713 \ufffd"


WILD = (
    *JUNK,
    10**4000,
    -(2**63) - 1,
    1e308,
    -5e-324,
    float("-inf"),
    "y" * 100_000,
    "\x00\u202e\U0001f98a",
    [0] * 5_000,
    [[]] * 1_000,
    {str(number): 0 for number in range(1_000)},
    json.loads("[" * 100 + "]" * 100),
    json.loads('{"a":' * 100 + "0" + "}" * 100),
    np.full(400_000, np.nan),
    np.full((1,) * 32, -1, np.int8),
    np.zeros((0, 2**30)),
    {"__array__": 0},
    {"__float__": "nan"},
    {"type": "Answer"},
)
DONE = {
    "outputs": {"out": np.zeros(3, np.float32)},
    "counters": {"global_load.requests": 1.0, "launches": 1.0},
    "modified": ["x"],
    "error": None,
    "access": ACCESS,
    "findings": [
        {"text": "", "acts": [], "lanes": [[7, 12, 10, 320]]},
        {"text": "a race", "acts": [ACT, ACT]},
    ],
}
CONVERSATIONS = {  # who speaks: what he says, and when it is right
    **{name: (Answer, {"data": answer}) for name, answer in ANSWERS.items()},
    "executor": (Done, DONE),
    "example/ring": (Answer, {"data": {"outputs": {"out": np.zeros(4, np.float32)}, "modified": ["x"]}}),
    "device": (Call, {"data": CALLS[4]}),
    "router": (Call, {"data": {"posts": POSTS, "wait": 0}}),
}


def sent(kind, fields, random):
    """The bytes of a message as one may send it that keeps to no limit, now and then with bytes changed."""
    arrays = []
    body = messages._as_json({"type": kind.__name__} | fields, arrays)
    sizes = [sum(map(len, parts)) for parts in arrays]
    line = f'{{"body": {body}, "arrays": {sizes}}}\n'.encode()
    data = bytearray(b"".join([line, *(part for parts in arrays for part in parts)]))
    for _ in range(random.choice([0, 0, 0, 1, 3])):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def heard(data, allowed):
    """What the judge makes of some bytes; raises BadMessage or Closed for what is no message."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=say, args=(theirs, data))
        writer.start()
        try:
            channel = Channel(ours)
            channel.allowances = (Allowance(8 << 20, 10),)
            return channel.receive(allowed)
        finally:
            ours.close()
            writer.join()


def say(connection, data):
    with contextlib.suppress(OSError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def judged(name, message):
    """Go on with a message as the judge does. Raises only what the judge takes for the student's fault."""
    if name == "device":
        host, works = {"x": np.zeros(4), "y": np.zeros(4)}, {"square": Work(np.square, 1e-6)}
        device = VirtualDevice(DeviceTiming(), host, works)
        for call in (*CALLS[:3], message.data, *CALLS[5:]):
            encode(Reply(device.call(call)))
        return
    if name == "router":
        hub = Router(2)
        for rank in (0, 1):
            for _, reply in hub.call(rank, copy.deepcopy(message.data)):
                encode(Reply(reply))
        return
    task = registry.get("example/axpy" if name == "executor" else name)
    case, host = task.cases(3)[0], None
    data = ANSWERS["example/axpy"] if name == "executor" else message.data
    if name == "example/ring":
        host = ranks.router(task, case)
        data = ranks.merged(dict.fromkeys(range(host.size), data), host)
    done = crossing.finish(task, case, whole(task, case, data), host)
    if name == "executor":
        attempts._check(message, done)
        outcome = attempts.outcome_of(case, message, done)
    elif type(done) is crossing.Order:
        encode(RunOrder(done.plain()))
        return
    else:
        outcome = done.of(case)
    report = scoring.judge(task, [case], [outcome])
    stable_json(report.as_dict())


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [400, pytest.param(10_000, marks=pytest.mark.full)], ids=["some", "ten thousand"]
)
def test_any_message_is_the_students_refusal_in_little_time_and_memory(count):
    """Right messages with up to three places made wild, some with bytes changed, as far as the points."""
    random, ends, slowest = Random(5), Counter(), 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        name = random.choice([*CONVERSATIONS])
        kind, fields = CONVERSATIONS[name]
        fields = copy.deepcopy(fields)
        for _ in range(random.randint(1, 3)):
            spots = [path for path in places(fields) if path]
            fields = put(fields, random.choice(spots), copy.deepcopy(random.choice(WILD)))
        began = time.process_time()
        try:
            data = sent(kind, fields, random)
        except BadMessage:  # complex numbers have no way into a message
            continue
        try:
            judged(name, heard(data, (kind, Failure)))
            ends["judged"] += 1
        except (BadMessage, Closed, crossing.Refused) as refused:
            ends[type(refused).__name__] += 1
        slowest = max(slowest, time.process_time() - began)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{dict(ends)}, the slowest took {slowest:.2f} s, memory grew by {grown >> 10} MiB")
    assert min(ends[end] for end in ("judged", "BadMessage", "Refused")) > count / 100
    assert slowest < 2 and grown < 300 << 10
