"""The *ranks* crossing: n processes run the same function, and every byte between them passes the judge's router.

The student's function gets a Comm: rank, size, send, recv, barrier. Sends do not wait; a receive waits for its sender.
"""

import threading
from collections import defaultdict, deque

import numpy as np

from warplab.crossing.errors import Refused
from warplab.crossing.values import check_callable, plain_copy, read_results
from warplab.plain import NotPlain, as_array

COMM = "comm"  # the argument that is the communicator
MAX_MESSAGES = 100_000
MAX_MESSAGE_BYTES = 64 << 20
MAX_WAITING_BYTES = 512 << 20


class CommError(RuntimeError):
    """The router refused a message; the text is a sentence for the student."""


class Comm:
    """One rank's end: `rank` of `size`. Arrays cross as copies."""

    def __init__(self, call, rank, size):
        self._call, self.rank, self.size = call, rank, size

    def send(self, to, array):
        """Send an array to rank `to`; returns at once."""
        try:
            self._ask({"op": "send", "to": to, "array": as_array(array, str(getattr(array, "dtype", "float64")).removeprefix("torch."))})
        except (NotPlain, TypeError) as problem:
            raise CommError(f"send takes an array or a tensor: {problem}") from None

    def recv(self, frm):
        """The next array that rank `frm` sent here; waits until there is one."""
        return self._ask({"op": "recv", "from": frm})["array"]

    def barrier(self):
        """Wait until every rank is here."""
        self._ask({"op": "barrier"})

    def _ask(self, message):
        reply = self._call(message)
        if "error" in reply:
            raise CommError(reply["error"])
        return reply


class Router:
    """The judge's end: carries arrays between ranks, counts them, and says when nobody can go on."""

    def __init__(self, size):
        self.size = size
        self.queues = defaultdict(deque)
        self.sent, self.arrays = [0] * size, 0
        self.messages, self.waiting_bytes = 0, 0
        self.waiting = {}  # rank -> the request that waits
        self.gone = set()

    def call(self, rank, message):
        """Replies to send as a list of (rank, reply), oldest first: none while this rank has to wait."""
        self.messages += 1
        if self.messages > MAX_MESSAGES:
            return [(rank, {"error": f"more than {MAX_MESSAGES:,} messages: does a loop never end?"})]
        op = message.get("op") if type(message) is dict else None
        if op == "send":
            return self._send(rank, message)
        if op == "recv":
            frm = message.get("from")
            if type(frm) is not int or not 0 <= frm < self.size or frm == rank:
                return [(rank, {"error": f"rank {rank} cannot receive from {str(frm)[:20]}: the others are 0 to {self.size - 1}"})]
        elif op != "barrier":
            return [(rank, {"error": "a message is a send, a recv or a barrier"})]
        self.waiting[rank] = message
        return self._settle()

    def leave(self, rank):
        """A rank has returned or is lost: who waits for it waits in vain."""
        self.gone.add(rank)
        self.waiting.pop(rank, None)
        return self._settle()

    def counters(self):
        """Bytes of all arrays sent, the most by one rank, and the number of messages with an array."""
        return {
            "ranks.bytes": float(sum(self.sent)),
            "ranks.bytes_of_one": float(max(self.sent)),
            "ranks.messages": float(self.arrays),
        }

    def _send(self, rank, message):
        to, array = message.get("to"), message.get("array")
        if type(to) is not int or not 0 <= to < self.size or to == rank:
            return [(rank, {"error": f"rank {rank} cannot send to {str(to)[:20]}: the others are 0 to {self.size - 1}"})]
        if type(array) is not np.ndarray:
            return [(rank, {"error": "send takes an array"})]
        if array.nbytes > MAX_MESSAGE_BYTES or self.waiting_bytes + array.nbytes > MAX_WAITING_BYTES:
            return [(rank, {"error": f"{array.nbytes:,} bytes are too many: {MAX_MESSAGE_BYTES >> 20} MiB a message, {MAX_WAITING_BYTES >> 20} MiB under way"})]
        self.sent[rank] += array.nbytes
        self.arrays += 1
        self.waiting_bytes += array.nbytes
        self.queues[rank, to].append(array)
        return [(rank, {}), *self._settle()]

    def _settle(self):
        replies = []
        for rank, message in list(self.waiting.items()):
            if message["op"] == "recv" and self.queues[message["from"], rank]:
                array = self.queues[message["from"], rank].popleft()
                self.waiting_bytes -= array.nbytes
                del self.waiting[rank]
                replies.append((rank, {"array": array}))
        if len(self.waiting) == self.size and all(message["op"] == "barrier" for message in self.waiting.values()):
            replies += [(rank, {}) for rank in self.waiting]
            self.waiting.clear()
        if self.waiting and len(self.waiting) + len(self.gone) == self.size:
            sentence = self.deadlock()
            replies += [(rank, {"error": sentence}) for rank in self.waiting]
            self.waiting.clear()
        return replies

    def deadlock(self):
        """One sentence on who waits for whom."""
        whom = {rank: f"rank {m['from']}" if m["op"] == "recv" else "a barrier" for rank, m in sorted(self.waiting.items())}
        waits = [f"rank {rank} waits for {what}" for rank, what in whom.items()]
        left = f"; rank{'s' * (len(self.gone) > 1)} {', '.join(map(str, sorted(self.gone)))} returned" if self.gone else ""
        return f"deadlock: {', '.join(waits)}{left}, and nothing is under way"


def question(task, case, rank=0):
    """One rank's inputs: its own part of those in task.sharded, all of the others."""
    size = task.world(case.inputs)
    inputs = {name: plain_copy(case.inputs[name][rank] if name in task.sharded else case.inputs[name]) for name in task.arguments if name != COMM}
    return {"arguments": list(task.arguments), "inputs": inputs, "rank": rank, "size": size, "returns": dict(task.returns)}


def answer(question, names, entry, plan, call):
    """Call the student's function as one rank."""
    check_callable(entry, names[0])
    values = {COMM: Comm(call, question["rank"], question["size"])} | question["inputs"]
    return {"outputs": read_results(question["returns"], entry(*(values[name] for name in question["arguments"])), names[0])}


def result_name(name, rank):
    """"out[2]": result `out` of rank 2."""
    return f"{name}[{rank}]"


def run_here(task, case, entry):
    """All ranks as threads of this process. Returns ({rank: answer}, router); raises what the first rank raised."""
    size = task.world(case.inputs)
    router, lock, answers, errors = Router(size), threading.Condition(), {}, {}
    inbox = {}

    def deliver(replies):
        inbox.update(replies)
        lock.notify_all()

    def call(rank):
        def ask(message):
            with lock:
                deliver(router.call(rank, message))
                lock.wait_for(lambda: rank in inbox)
                return inbox.pop(rank)

        return ask

    def live(rank):
        try:
            answers[rank] = answer(question(task, case, rank), (task.entry, None), entry, None, call(rank))
        except BaseException as error:  # noqa: BLE001 - told to the student as the row's reason
            errors.setdefault(rank, error)
        finally:
            with lock:
                deliver(router.leave(rank))

    threads = [threading.Thread(target=live, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((error for _, error in sorted(errors.items()) if type(error) is not CommError), errors[min(errors)])
    return answers, router


def together(answers):
    """The answers of all ranks as one: {"out[0]": ..., "out[1]": ...}. Raises Refused for what is no answer."""
    outputs = {}
    for rank, data in sorted(answers.items()):
        if type(data) is not dict or type(data.get("outputs")) is not dict:
            raise Refused(f"what rank {rank} sent back is not a result")
        outputs |= {result_name(name, rank): value for name, value in data["outputs"].items()}
    return {"outputs": outputs}
