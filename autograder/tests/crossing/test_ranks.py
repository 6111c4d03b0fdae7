"""Ranks: processes that stay open for a page, the router of the graded tasks, and
torch.distributed on both of them and on gloo.
"""

import sys
import threading

import numpy as np
import pytest
import torch
import torch.distributed as dist
from corpus_files import solution_of

from warplab.crossing import Outcome
from warplab.crossing import ranks as crossing
from warplab.crossing.router import MAX_MESSAGES, Router, collective, ring_traffic
from warplab.models.rank_pool import RankError, Ranks
from warplab.tasks import ps10, registry, scoring
from warplab.tasks.declaration import RanksTask
from warplab.tasks.rubric import Case

processes = pytest.mark.slow  # they import torch
SOLVED = [name for name in registry.names("ps10") if registry.get(name).crossing == "ranks"]
DEADLOCK = (
    "deadlock: rank 0 waits for a message of rank 1, rank 1 waits for rank 0 to receive, and nothing is "
    "under way"
)


@processes
def test_answers_come_by_rank_and_tensors_travel_both_ways():
    three = Ranks(3)
    try:
        assert three.run(lambda x, by: (dist.get_rank(), (x * by).tolist()), torch.arange(3), 2) == [
            (rank, [0, 2, 4]) for rank in range(3)
        ]
        assert torch.equal(
            three.run(lambda: torch.full((2,), float(dist.get_rank())))[2], torch.tensor([2.0, 2.0])
        )
    finally:
        three.close()


@processes
def test_ranks_say_which_of_them_failed_and_end():
    with pytest.raises(ValueError, match="0 ranks"):
        Ranks(0)
    two = Ranks(2)
    running = list(two._processes)
    with pytest.raises(RankError, match="rank 1: ZeroDivisionError"):
        two.run(lambda: 1 / (dist.get_rank() - 1))
    assert not any(process.is_alive() for process in running)
    with pytest.raises(RankError, match="closed"):
        two.run(dist.get_rank)


@processes
def test_a_message_that_nobody_sends_is_not_waited_for_for_ever(monkeypatch):
    two = Ranks(2)
    two.run(dist.get_rank)
    monkeypatch.setattr(two, "_patience", 1.0)
    with pytest.raises(RankError, match="no answer within 1 s from rank 0"):
        two.run(lambda: dist.recv(torch.empty(1), 1) if dist.get_rank() == 0 else None)
    assert two._processes == []


@processes
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SOLVED)
def test_a_solution_runs_unchanged_on_gloo_and_gives_the_same(name):
    """In real processes, with real messages: what earns all points on the router is a
    program for torchrun, too.
    """
    task, (entry, _) = registry.get(name), solution_of(name)
    by_size = {task.world(case.inputs): case for case in task.cases(5)}  # the last case of each size
    for size, case in by_size.items():
        questions = [crossing.question(task, case, rank) for rank in range(size)]
        rooms = Ranks(size)
        try:
            found = rooms.run(_as_a_rank, entry, questions)
        finally:
            rooms.close()
        routed = crossing.run_here(task, case, entry, crossing.router(task, case))
        for rank, outputs in enumerate(found):
            for result, value in outputs.items():
                want, where = routed[rank]["outputs"][result], f"{case.name}: {result} of rank {rank}"
                np.testing.assert_allclose(value, want, rtol=1e-12, atol=1e-14, err_msg=where)


def _as_a_rank(entry, questions):
    from warplab.crossing.ranks import as_tensors
    from warplab.crossing.values import read_results

    question = questions[dist.get_rank()]
    return read_results(question["returns"], entry(*map(as_tensors, question["inputs"].values())), "entry")


class Several(RanksTask):
    """A task of `size` ranks without inputs, whose submission returns one number."""

    entry, arguments, returns = "several", (), {"out": "numbers"}

    def __init__(self, size, rule=""):
        self.size, self.rule = size, rule

    def world(self, inputs):
        return self.size


def together(size, function, rule=""):
    """(what each rank returned, counters) of `function` in a notebook's way."""
    task, case = Several(size, rule), Case("case", {}, None)
    hub = crossing.router(task, case)
    answers = crossing.run_here(task, case, function, hub)
    crossing.merged(answers, hub)
    return [answers[rank]["outputs"]["out"].tolist() for rank in range(size)], hub.counters()


def refusal(size, function, rule=""):
    """The sentence that ends it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the kinds differ, the sentence is what counts
        together(size, function, rule)
    return str(caught.value)


def test_sends_and_receives_carry_any_dtype_and_count_their_bytes():
    """3 float32 and 5 int16 from rank 0 to rank 1 are 12 and 10 bytes, in 2 messages."""

    def function():
        if dist.get_rank() == 0:
            dist.send(torch.arange(3, dtype=torch.float32), 1)
            dist.send(torch.arange(5, dtype=torch.int16), 1, tag=7)
            return 0
        reals, whole = torch.empty(3), torch.empty(5, dtype=torch.int16)
        first, second = dist.irecv(whole, 0, tag=7), dist.irecv(reals, 0)
        second.wait()
        first.wait()
        return (reals.sum() + whole.sum()).item()

    counters = {
        "ranks.bytes": 22.0,
        "ranks.bytes_of_one": 22.0,
        "ranks.messages": 2.0,
        "ranks.collectives": 0.0,
    }
    assert together(2, function) == ([0.0, 13.0], counters)


def test_a_tensor_is_read_when_its_rank_next_waits_as_a_network_may_do():
    def function():
        me, inbox, mine = dist.get_rank(), torch.empty(1), torch.ones(1)
        sending = dist.isend(mine, 1 - me)
        mine += 10
        dist.recv(inbox, 1 - me)
        sending.wait()
        return inbox.item()

    assert together(2, function)[0] == [11.0, 11.0]


def test_a_batch_of_sends_and_receives_has_no_order():
    def function():
        me, inbox = dist.get_rank(), torch.empty(1)
        pair = [
            dist.P2POp(dist.irecv, inbox, (me - 1) % 3),
            dist.P2POp(dist.isend, torch.tensor([float(me)]), (me + 1) % 3),
        ]
        works = dist.batch_isend_irecv(pair)
        works[0].wait()
        while not works[1].is_completed():
            pass
        return inbox.item()

    assert together(3, function)[0] == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("of", "each", "result", "bytes_", "of_one", "messages"),
    [
        (
            "all_reduce",
            5,
            [6.0, 6.0, 6.0],
            160,
            56,
            12,
        ),  # pieces of 2, 2, 1: 2 * 5 less the pieces r + 1 and r + 2, so 7, 7, 6 float64
        ("all_gather", 2, [3.0, 3.0, 3.0], 96, 32, 6),  # 2 arrays of 2 from each
        ("broadcast", 4, [2.0, 2.0, 2.0], 64, 32, 2),  # from rank 1 to 2, from 2 to 0
        ("reduce_scatter", 6, [6.0, 6.0, 6.0], 96, 32, 6),  # 2 pieces of 2 from each
    ],
)
def test_a_collective_counts_as_the_ring_that_does_it(of, each, result, bytes_, of_one, messages):
    def function():
        mine = torch.full((each,), dist.get_rank() + 1.0, dtype=torch.float64)
        if of == "all_reduce":
            dist.all_reduce(mine)
        elif of == "broadcast":
            dist.broadcast(mine, 1)
        elif of == "all_gather":
            gathered = mine.new_empty(3, each)
            dist.all_gather_single(gathered, mine)
            return gathered[2, 0].item()
        else:
            piece = mine.new_empty(each // 3)
            dist.reduce_scatter_single(piece, mine)
            return piece[0].item()
        return mine[0].item()

    counters = {
        "ranks.bytes": bytes_,
        "ranks.bytes_of_one": of_one,
        "ranks.messages": messages,
        "ranks.collectives": 1,
    }
    assert together(3, function) == (result, counters)


@pytest.mark.parametrize(("size", "count"), [(1, 5), (2, 6), (3, 7), (4, 2), (5, 11)])
def test_the_ring_that_is_counted_is_the_ring_of_the_solution(size, count):
    """Message by message: the all-reduce of the router and a student's own ring leave the same counters."""
    ring, _ = solution_of("ps10/ring_all_reduce")

    def own():
        return ring(torch.ones(count, dtype=torch.float64)).sum().item()

    def library():
        x = torch.ones(count, dtype=torch.float64)
        dist.all_reduce(x)
        return x.sum().item()

    one, other = together(size, own), together(size, library)
    assert one[0] == other[0] == [float(size * count)] * size
    assert one[1] | {"ranks.collectives": 1.0} == other[1]


@pytest.mark.parametrize(
    ("operation", "want"), [("SUM", 9.0), ("AVG", 3.0), ("PRODUCT", 24.0), ("MIN", 2.0), ("MAX", 4.0)]
)
def test_reductions(operation, want):
    def function():
        x = torch.tensor([float(dist.get_rank() + 2)])
        dist.all_reduce(x, op=getattr(dist.ReduceOp, operation))
        return x.item()

    assert together(3, function)[0] == [want] * 3


def test_several_collectives_can_be_under_way():
    def function():
        numbers = torch.arange(4.0)
        works = [dist.all_reduce(number, async_op=True) for number in numbers]
        dist.barrier()
        for work in works:
            work.wait()
        return numbers.tolist()

    assert together(2, function)[0] == [[0.0, 2.0, 4.0, 6.0]] * 2


def _other():
    return 1 - dist.get_rank()


def _swap_in_place(numbers):
    sending = dist.isend(numbers[:3], _other())
    dist.recv(numbers[2:], _other())  # number 2 is in both
    sending.wait()


REFUSED = {
    "both receive first": (
        lambda: dist.recv(torch.empty(1), _other()),
        "0 waits for a message of rank 1, rank 1 waits for a message of rank 0",
    ),
    "both send first": (
        lambda: dist.send(torch.ones(1), _other()),
        "0 waits for rank 1 to receive, rank 1 waits for rank 0 to receive",
    ),
    "one has gone": (
        lambda: dist.barrier() if dist.get_rank() else 0,
        "rank 1 waits for all ranks to call barrier; rank 0 returned",
    ),
    "not waited for": (
        lambda: dist.isend(torch.ones(1), _other()),
        "isend to rank 1 was begun and never waited for: call wait()",
    ),
    "into what is sent": (
        lambda: _swap_in_place(torch.ones(4)),
        "irecv from rank 1 uses memory of the tensor of isend to rank 1, which has not completed",
    ),
    "different collectives": (
        lambda: dist.barrier() if dist.get_rank() else dist.all_reduce(torch.ones(3)),
        "rank 0 calls all_reduce of 3 float32 (reduce sum); rank 1 calls barrier",
    ),
    "different lengths": (
        lambda: dist.all_reduce(torch.ones(3 + dist.get_rank())),
        "rank 1 calls all_reduce of 4 float32",
    ),
    "no room": (
        lambda: dist.all_gather_single(torch.empty(3), torch.ones(2)),
        "4 numbers of float32 arrived, and the tensor for them has 3 of float32",
    ),
    "too short a list": (
        lambda: dist.all_gather([torch.empty(2)], torch.ones(2)),
        "2 tensors, one for each rank, and got 1",
    ),
    "every second number": (
        lambda: dist.all_reduce(torch.ones(4)[::2]),
        "not contiguous; take tensor.contiguous()",
    ),
    "bfloat16": (
        lambda: dist.all_reduce(torch.ones(1, dtype=torch.bfloat16)),
        "a tensor of bfloat16 cannot be sent",
    ),
    "to itself": (
        lambda: dist.isend(torch.ones(1), dist.get_rank()).wait(),
        "a rank sends nothing to itself",
    ),
    "to nobody": (lambda: dist.send(torch.ones(1), 99), "cannot send to rank 99: the ranks are 0 to 1"),
    "an array": (lambda: dist.send(np.ones(1), _other()), "type torch.Tensor"),
    "from anybody": (lambda: dist.recv(torch.empty(1)), "name one: dist.recv(tensor, src=...)"),
    "an odd reduction": (
        lambda: dist.all_reduce(torch.ones(1, dtype=torch.int64), op=dist.ReduceOp.BXOR),
        "the reduction BXOR; use one of SUM",
    ),
    "half a number": (
        lambda: dist.all_reduce(torch.ones(1, dtype=torch.int64), op=dist.ReduceOp.AVG),
        "all_reduce cannot average int64",
    ),
    "uneven pieces": (
        lambda: dist.reduce_scatter_single(torch.empty(1), torch.ones(3)),
        "3 numbers cannot give 2 ranks equal pieces",
    ),
    "another group": (lambda: dist.new_group([0, 1]), "new_group: all ranks are one group"),
    "another backend": (lambda: dist.init_process_group("gloo"), "twice"),
    "a reduction to one": (lambda: dist.reduce(torch.ones(1), 0), "not available between ranks: reduce;"),
    "a pickle": (
        lambda: dist.all_gather_object([None, None], {}),
        "this collective pickles Python objects",
    ),
    "a pickled list": (
        lambda: dist.broadcast_object_list([{}], src=0),
        "this collective pickles Python objects",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_told_in_a_sentence(name):
    function, sentence = REFUSED[name]
    assert sentence in refusal(2, function)


def test_neighbouring_parts_of_one_tensor_travel_at_once_and_one_may_be_sent_twice():
    def function():
        numbers = torch.arange(4.0)
        works = [dist.isend(numbers[:2], _other()), dist.isend(numbers[:2], _other())]
        works += [dist.irecv(numbers[2:], _other()), dist.irecv(torch.empty(2), _other())]
        for work in works:
            work.wait()
        return numbers.tolist()

    assert together(2, function)[0] == [[0.0, 1.0, 0.0, 1.0]] * 2


def test_a_task_that_is_to_write_the_collective_has_it_closed_but_not_the_barrier():
    rule = "this task is to write all_reduce from send and recv"
    assert refusal(2, lambda: dist.all_reduce(torch.ones(1)), rule) == f"all_reduce is not allowed: {rule}"
    assert together(2, lambda: dist.barrier() or 1.0, rule)[0] == [1.0, 1.0]


def test_the_cause_is_told_and_not_what_followed_from_it():
    def function():
        if dist.get_rank() == 2:
            return 1 / 0
        dist.barrier()

    assert "division by zero" in refusal(3, function)


def test_a_notebooks_own_group_is_out_of_sight_and_kept():
    """A page may have a group open; the check neither uses nor harms it, and leaves the
    exception hook alone.
    """
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    hook = sys.excepthook
    try:
        group = dist.group.WORLD
        assert together(2, lambda: float(dist.get_world_size()))[0] == [2.0, 2.0]
        assert refusal(2, lambda: 1 / 0) == "division by zero"
        assert dist.group.WORLD is group
        assert dist.get_world_size() == 1
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [1.0, 1.0]
        assert sys.excepthook is hook
    finally:
        dist.destroy_process_group()


def test_ranks_leave_no_thread_behind():
    before = threading.active_count()
    refusal(4, lambda: dist.recv(torch.empty(1), (dist.get_rank() + 1) % 4))
    assert threading.active_count() == before


def test_ranks_that_share_a_group_object_are_told_and_do_not_hang():
    """Threads have one set of globals, and so a rank may get hold of another's group;
    in a process of its own it could not.
    """
    shared = []

    def function():
        shared.append(dist.group.WORLD)
        while len(shared) < 2:
            pass
        shared[0].barrier().wait()

    assert "sent a message while it waits for all ranks to call barrier" in refusal(2, function)


def post(op, **options):
    return {"posts": [{"op": op, "array": np.zeros(4)} | options]}


FORGED = {
    "no message": 7,
    "no list": {"posts": "posts"},
    "no posts": {"posts": [7]},
    "another op": post("exec"),
    "a list for an op": post(["all_reduce"]),
    "a negative rank": post("send", peer=-1, tag=0),
    "a rank too many": post("recv", peer=2, tag=0),
    "its own rank": post("send", peer=0, tag=0),
    "a bool for a rank": post("send", peer=True, tag=0),
    "a negative tag": post("send", peer=1, tag=-1),
    "a huge tag": post("recv", peer=1, tag=2**70),
    "a text for an array": post("send", peer=1, tag=0, array="0000"),
    "an array of arrays": post("send", peer=1, tag=0, array=np.zeros((2, 2))),
    "an oversized array": post("send", peer=1, tag=0, array=np.zeros((64 << 20) + 1, np.uint8)),
    "an oversized gathering": post("all_gather", array=np.zeros((32 << 20) + 1, np.uint8)),
    "a root that is not there": post("broadcast", root=2),
    "a reduction that is not there": post("all_reduce", reduce="__import__"),
    "a dict for a reduction": post("all_reduce", reduce={}),
    "to wait for nothing": {"posts": [], "wait": 0},
    "to wait for the past": {"posts": [], "wait": -1},
    "to test the future": {"posts": [], "test": 10**30},
    "too many": {"posts": [{"op": "recv", "peer": 1, "tag": 0}] * MAX_MESSAGES},
}


@pytest.mark.parametrize("name", FORGED)
def test_the_router_refuses_what_no_rank_of_ours_says_and_ends_the_case(name):
    hub = Router(2)
    assert hub.call(1, {"posts": [{"op": "recv", "peer": 0, "tag": 0}], "wait": 0}) == []
    (to, reply), (other, told) = hub.call(0, FORGED[name])
    assert (to, other) == (0, 1)
    assert reply == told == {"error": hub.failed}
    assert hub.failed
    assert hub.call(1, post("send", peer=0, tag=0)) == [(1, {"error": hub.failed})]
    assert hub.counters() == dict.fromkeys(
        ("ranks.bytes", "ranks.bytes_of_one", "ranks.messages", "ranks.collectives"), 0.0
    )
    with pytest.raises(Exception, match=r".") as caught:
        crossing.merged({0: {"outputs": {}}, 1: {"outputs": {}}}, hub)
    assert str(caught.value) == hub.failed


def test_the_router_keeps_at_most_16_mebibytes():
    hub = Router(2)
    piece = np.zeros(1 << 20, np.uint8)
    assert (
        "1 MiB a message" in hub.call(0, post("send", peer=1, tag=0, array=np.zeros(131_073)))[0][1]["error"]
    )
    hub = Router(2)
    for _ in range(16):
        assert hub.call(0, post("send", peer=1, tag=0, array=piece)) == [(0, {})]
    assert "16 MiB under way" in hub.call(0, post("send", peer=1, tag=0, array=piece))[0][1]["error"]


def test_what_was_received_is_under_way_no_more():
    hub = Router(2)
    for number in range(40):
        hub.call(0, post("send", peer=1, tag=0, array=np.zeros(1 << 20, np.uint8)))
        ((rank, reply),) = hub.call(1, {"posts": [{"op": "recv", "peer": 0, "tag": 0}], "wait": number})
        assert rank == 1
        assert reply["array"].size == 1 << 20
    assert hub.waiting_bytes == 0


def test_an_empty_message_is_news_and_counts_eight_bytes():
    hub = Router(2)
    hub.call(0, post("send", peer=1, tag=1, array=np.zeros(0)))
    assert hub.counters()["ranks.bytes"] == 8


def test_nobody_is_told_how_many_barriers_another_rank_has_come_to():
    """Two of three are passed, and the third is not: asked about it, the router waits, as the rank must."""
    hub, barrier = Router(2), {"op": "barrier"}
    assert hub.call(0, {"posts": [barrier] * 2}) == [(0, {})]
    assert hub.call(1, {"posts": [barrier] * 3, "test": 1}) == [(1, {})]
    assert hub.call(1, {"posts": [], "test": 2}) == []
    assert hub.call(0, {"posts": [barrier]}) == [(0, {}), (1, {})]
    assert hub.counters()["ranks.bytes"] == 0


def test_a_collective_that_fails_tells_nothing_of_the_others_twice():
    """Lengths of an array in an error would be a message for nothing: the case is over for all."""
    hub = Router(2)
    hub.call(0, post("all_reduce", reduce="sum", array=np.zeros(65)))
    hub.call(1, {"posts": [{"op": "barrier"}]})
    assert "all_reduce of 65 float64" in hub.failed
    assert hub.call(0, {"posts": []}) == [(0, {"error": hub.failed})]


def test_a_deadlock_says_who_waits_for_whom():
    hub = Router(2)
    assert hub.call(0, {"posts": [{"op": "recv", "peer": 1, "tag": 0}], "wait": 0}) == []
    assert hub.call(1, post("send", peer=0, tag=3) | {"wait": 0}) == [
        (0, {"error": DEADLOCK}),
        (1, {"error": DEADLOCK}),
    ]


def test_sums_are_taken_from_rank_0_on_in_the_arrays_own_type():
    """1 + 2^-24 is 1 in float32, and 2^-24 + 2^-24 + 1 is not."""
    small = np.float32([2.0**-24])
    assert collective("all_reduce", [np.float32([1]), small, small])[1] == 1
    assert collective("all_reduce", [small, small, np.float32([1])])[1] > 1


def test_traffic_of_one_rank_is_none():
    assert [ring_traffic(op, 1, 8) for op in ("all_reduce", "all_gather", "reduce_scatter", "broadcast")] == [
        [[]]
    ] * 4


LEAST = {  # of the row's case: the least that was worked out by hand, and the full points' limit
    "ring_all_reduce": ("bytes", {"x": [np.ones(40)] * 4}, 480, 480),  # 6 of 4 pieces of 10 numbers
    "tensor_parallel_mlp": (
        "bytes",
        {"x": np.ones((16, 16)), "w1": [np.ones((16, 16))] * 4, "w2": [np.ones((16, 16))] * 4},
        3072,  # 6 pieces of 64 numbers
        3072,
    ),
    # a step's ring has 6 pieces of 12 numbers; both steps' gradients and the last weights are 9 pieces
    "zero_adam": ("bytes", {"w": np.ones(48), "gradients": [np.ones((2, 48))] * 4, "lr": 0.1}, 864, 1152),
    # two ranks send to the third, which sends to both; two steps and a count, a ring each: 4 a rank
    "data_parallel": ("bucket", {"w": [np.ones(2)] * 20, "x": [0] * 3, "y": [0] * 3, "steps": 2}, 4, 36),
    # 3 ranks pass on 8 micro-batches of 10 numbers
    "pipeline": ("bytes", {"x": [np.ones((8, 2, 5))] + [np.zeros((0, 2, 5))] * 3, "w": [0] * 4}, 1920, 2112),
}


@pytest.mark.parametrize("name", LEAST)
def test_fewer_than_the_least_that_reaches_a_right_result_earns_nothing(name, monkeypatch):
    """Whatever way around the router there may be: what was not counted is missing in the count."""
    task = registry.get(f"ps10/{name}")
    key, inputs, least, full = LEAST[name]
    bound = task.bounds(inputs)[key]
    assert (bound.least, bound.full) == (least, full)
    monkeypatch.setattr(type(task), "wrong_result", lambda *_: "")
    (points,) = (item.points for item in task.items if item.key == key)

    def line(count):
        case = Case("case", inputs, key)
        report = scoring.judge(task, [case], [Outcome("case", counters={bound.counter: float(count)})])
        return next(line for line in report.lines if line.key == key)

    assert [line(count).points for count in (least - 1, least, full)] == [0, points, points]
    assert f"no right result takes fewer than {least:,}: send numbers whole" in line(least - 1).reason


def test_what_is_said_of_the_busiest_rank_follows_from_the_ring_that_divides_evenly():
    for size, count in ((2, 8), (3, 9), (4, 40)):
        sent = [8 * sum(numbers) for numbers in ring_traffic("all_reduce", size, count)]
        assert set(sent) == {ps10.least_bytes(size, count)} == {ps10.ring_bytes(size, count)}
    assert ps10.least_bytes(4, 2) == 24 < ps10.ring_bytes(4, 2) == 48
