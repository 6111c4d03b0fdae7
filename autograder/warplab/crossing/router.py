"""The judge's side of the *ranks* crossing: delivers messages between ranks, counts them, detects deadlocks.

A rank's message is {"posts": [...], "wait": n} or {"posts": [...], "test": n} or {"posts": [...]}. A rank's
posts are numbered from 0 on, over all its messages; "wait" and "test" refer to these numbers. As in gloo and
NCCL, a send is done when the other rank receives it. A test of a barrier waits like "wait": otherwise its
result could be used to pass on information that is not counted.

    {"op": "send", "peer": 1, "tag": 0, "array": a}          arrays are flat
    {"op": "recv", "peer": 1, "tag": 0}
    {"op": "barrier"}
    {"op": "broadcast", "root": 0, "array": a}               the root's array
    {"op": "all_reduce", "reduce": "sum", "array": a}        the sum of all ranks' arrays
    {"op": "reduce_scatter", "reduce": "sum", "array": a}    of it, this rank's piece
    {"op": "all_gather", "array": a}                         all ranks' arrays, one after the other

The router computes collectives itself and counts the traffic of a ring algorithm (`ring_traffic`).
The first error ends the case for all ranks: an error that tells one rank about another would otherwise be a
message that is not counted.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_MESSAGES = 100_000
MAX_MESSAGE_BYTES = 1 << 20
MAX_WAITING_BYTES = 16 << 20
MAX_TAG = 1 << 31
MAX_HISTORY, DRAWN = 2_000, 32  # messages recorded for a drawing, messages in the drawing
LEAST_BYTES = 8  # counted for a message at least, since also an empty one carries information
REDUCTIONS = {"sum": np.add, "avg": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
COLLECTIVES = {
    "barrier": (),
    "broadcast": ("root",),
    "all_reduce": ("reduce",),
    "all_gather": (),
    "reduce_scatter": ("reduce",),
}


class CommError(RuntimeError):
    """The router refused a message; the text is a sentence for the student."""


@dataclass(slots=True)
class Post:
    """One send, receive or collective of a rank.

    whom: what it waits for, in words. array: the data it sends, later the data it received, or None.
    """

    whom: str
    array: Any = None
    done: bool = False
    barrier: bool = False
    drawn: list | None = None  # its row of Router.history


class Router:
    """One case's router for `size` ranks.

    rule: why collectives are not allowed, as a clause; "" where they are.
    """

    def __init__(self, size, rule=""):
        self.size, self.rule = size, rule
        self.posts = [[] for _ in range(size)]
        # {(from, to, tag): posts not yet matched}
        self.sends, self.receives = defaultdict(deque), defaultdict(deque)
        # collectives of each rank; the k-th of one rank belongs to the k-th of every other
        self.joined = [[] for _ in range(size)]
        self.sent, self.arrays, self.collectives = [0] * size, 0, 0
        self.messages, self.waiting_bytes = 0, 0
        self.waiting, self.gone = {}, set()  # {rank: the post it waits for}, ranks that have ended
        self.failed = ""
        self.history = []  # [from, to, bytes, time sent, time received] of messages; None for never
        self.moments = 0

    def call(self, rank, message):
        """Handle a rank's message; returns replies to send, [(rank, reply)], to any ranks that can go on."""
        if self.failed:
            return [(rank, {"error": self.failed})]
        try:
            reply = self._take(rank, message)
        except CommError as problem:
            return [(rank, {"error": str(problem)}), *self._fail(str(problem))]
        return ([] if reply is None else [(rank, reply)]) + self._settle()

    def leave(self, rank):
        """A rank has returned or is lost. Returns replies as call(): errors to ranks that wait for it."""
        self.gone.add(rank)
        self.waiting.pop(rank, None)
        return self._settle()

    def counters(self):
        """{counter: value}: bytes sent in all and by the busiest rank, messages with an array, collectives.

        A send counts when it is posted, a collective (except a barrier) when all ranks have joined, with the
        bytes of a ring algorithm (`ring_traffic`). A message counts at least LEAST_BYTES.
        """
        counts = {"bytes": sum(self.sent), "bytes_of_one": max(self.sent)}
        counts |= {"messages": self.arrays, "collectives": self.collectives}
        return {f"ranks.{name}": float(count) for name, count in counts.items()}

    def trace(self):
        """The first point-to-point messages, and unmatched ones, for a drawing; {} without any."""
        lost = [row for row in self.history[DRAWN:] if None in row][: DRAWN // 2]
        rows = [list(row) for row in self.history[:DRAWN] + lost]
        more = len(self.history) > len(rows)
        return {"kind": "messages", "size": self.size, "messages": rows, "more": more} if rows else {}

    def _take(self, rank, message):
        posts = message.get("posts") if type(message) is dict else None
        if type(posts) is not list or any(type(post) is not dict for post in posts):
            raise CommError("a message to the router must be a dict with a list of dicts under `posts`")
        if rank in self.waiting:
            raise CommError(
                f"rank {rank} sent a message while it waits for {self.waiting[rank].whom}: "
                "use one thread in each rank, and only that rank's own group"
            )
        self.messages += 1 + len(posts)
        if self.messages > MAX_MESSAGES:
            raise CommError(f"more than {MAX_MESSAGES:,} messages: does a loop never end?")
        for post in posts:
            self._post(rank, post)
        mine = self.posts[rank]
        number = next((message[key] for key in ("wait", "test") if key in message), None)
        if number is None:
            return {}
        if type(number) is not int or not 0 <= number < len(mine):
            raise CommError(
                f"rank {rank} waits for message {str(number)[:20]} of the {len(mine)} that it posted"
            )
        if "test" in message and not mine[number].barrier:
            return {"done": mine[number].done}
        self.waiting[rank] = mine[number]
        return None

    def _post(self, rank, post):
        op = post.get("op")
        if type(op) is str and op in ("send", "recv"):
            self._point_to_point(rank, op, post)
        elif type(op) is str and op in COLLECTIVES:
            self._join(rank, op, post)
        else:
            raise CommError(f"a message must be one of send, recv, {', '.join(COLLECTIVES)}")

    def _point_to_point(self, rank, op, post):
        peer, tag = post.get("peer"), post.get("tag")
        word = "send to" if op == "send" else "receive from"
        if type(peer) is not int or not 0 <= peer < self.size or peer == rank:
            raise CommError(f"rank {rank} cannot {word} rank {str(peer)[:20]}: {self._others()}")
        if type(tag) is not int or not 0 <= tag < MAX_TAG:
            raise CommError(f"a tag must be a whole number from 0 to {MAX_TAG - 1:,}, got {str(tag)[:20]}")
        if op == "send":
            new, key = Post(f"rank {peer} to receive", self._array(post)), (rank, peer, tag)
            mine, theirs = self.sends, self.receives
            self._count(rank, [new.array.nbytes])
        else:
            new, key = Post(f"a message of rank {peer}"), (peer, rank, tag)
            mine, theirs = self.receives, self.sends
        self.posts[rank].append(new)
        self.moments += 1
        if key not in theirs:
            self._begin(new, op, key)
            mine[key].append(new)
            return
        other = theirs[key].popleft()
        if not theirs[key]:
            del theirs[key]
        send, receive = (new, other) if op == "send" else (other, new)
        if other.drawn is not None:
            other.drawn[2:] = [send.array.nbytes, other.drawn[3] or self.moments, self.moments]
        receive.array, send.array = send.array, None
        send.done = receive.done = True

    def _begin(self, post, op, key):
        """Record a send or receive that is not matched yet in the history."""
        if len(self.history) < MAX_HISTORY:
            sent, got = (self.moments, None) if op == "send" else (None, self.moments)
            post.drawn = [*key[:2], post.array.nbytes if op == "send" else 0, sent, got]
            self.history.append(post.drawn)

    def _join(self, rank, op, post):
        if self.rule and op != "barrier":
            raise CommError(f"{op} is not allowed: {self.rule}")
        options = {name: post.get(name) for name in COLLECTIVES[op]}
        root, reduce = options.get("root", 0), options.get("reduce", "sum")
        if type(root) is not int or not 0 <= root < self.size:
            raise CommError(f"{op} cannot start at rank {str(root)[:20]}: the ranks are 0 to {self.size - 1}")
        if type(reduce) is not str or reduce not in REDUCTIONS:
            raise CommError(f"{op} knows the reductions {', '.join(REDUCTIONS)}, got {str(reduce)[:20]}")
        array = None if op == "barrier" else self._array(post, self.size if op == "all_gather" else 1)
        if array is not None:
            self._check_collective(op, options, array)
        text = op if array is None else f"{op} of {array.size:,} {array.dtype}"
        text += f" ({', '.join(f'{name} {value}' for name, value in options.items())})" if options else ""
        new = Post(f"all ranks to call {text}", array, barrier=op == "barrier")
        self.posts[rank].append(new)
        self.joined[rank].append((op, options, text, new))
        together = len(self.joined[rank]) - 1
        if all(len(calls) > together for calls in self.joined):
            self._finish([calls[together] for calls in self.joined])

    def _finish(self, calls):
        """Do a collective that all ranks have joined. Raises CommError unless all called the same one."""
        op, options, _, _ = calls[0]
        texts, posts = [call[2] for call in calls], [call[3] for call in calls]
        brought = [post.array for post in posts]
        for post in posts:
            self.waiting_bytes -= post.array.nbytes if post.array is not None else 0
            post.array, post.done = None, True
        if len(set(texts)) > 1:
            told = "; ".join(f"rank {rank} calls {text}" for rank, text in enumerate(texts))
            raise CommError(f"all ranks must call the same collective, with equal sizes and dtypes: {told}")
        if op == "barrier":
            return
        self.collectives += 1
        for rank, counts in enumerate(ring_traffic(op, self.size, brought[0].size, options.get("root", 0))):
            self._count(rank, [count * brought[0].itemsize for count in counts])
        for post, array in zip(posts, collective(op, brought, **options), strict=True):
            post.array = array
            self.waiting_bytes += array.nbytes

    def _check_collective(self, op, options, array):
        """Raise CommError if this collective cannot be done with this array."""
        if op == "reduce_scatter" and array.size % self.size:
            what = f"reduce_scatter of {array.size:,} numbers cannot give {self.size} ranks equal pieces"
            raise CommError(f"{what}: pad them to a multiple of {self.size}")
        if options.get("reduce") == "avg" and array.dtype.kind != "f":
            raise CommError(f"{op} cannot average {array.dtype}: take the sum, or send a floating dtype")

    def _array(self, post, times=1):
        """The array of a post. Raises CommError unless it is flat and `times` copies of it fit the limits."""
        array = post.get("array")
        if type(array) is not np.ndarray or array.ndim != 1:
            raise CommError("the array of a message must be one-dimensional")
        nbytes = array.nbytes * times
        if nbytes > MAX_MESSAGE_BYTES or self.waiting_bytes + nbytes > MAX_WAITING_BYTES:
            limits = f"{MAX_MESSAGE_BYTES >> 20} MiB a message or {MAX_WAITING_BYTES >> 20} MiB under way"
            raise CommError(f"{nbytes:,} bytes exceed the limit of {limits}: send less, or wait earlier")
        self.waiting_bytes += array.nbytes
        return array

    def _count(self, rank, messages):
        self.sent[rank] += sum(max(nbytes, LEAST_BYTES) for nbytes in messages)
        self.arrays += len(messages)

    def _others(self):
        others = f"the ranks are 0 to {self.size - 1}, and a rank sends nothing to itself"
        return others if self.size > 1 else "there is no other rank"

    def _settle(self):
        replies = []
        for rank, post in list(self.waiting.items()):
            if post.done:
                del self.waiting[rank]
                replies.append((rank, self._result(post)))
        if self.waiting and len(self.waiting) + len(self.gone) == self.size:
            replies += self._fail(self.deadlock())
        return replies

    def _fail(self, sentence):
        """End the case with an error; returns the replies to all waiting ranks."""
        self.failed = sentence
        replies = [(rank, {"error": sentence}) for rank in self.waiting]
        self.waiting.clear()
        return replies

    def _result(self, post):
        array, post.array = post.array, None
        if array is None:
            return {}
        self.waiting_bytes -= array.nbytes
        return {"array": array}

    def deadlock(self):
        """The sentence about a deadlock: which rank waits for which."""
        waits = [f"rank {rank} waits for {post.whom}" for rank, post in sorted(self.waiting.items())]
        gone = f"; rank{'s' * (len(self.gone) > 1)} {', '.join(map(str, sorted(self.gone)))} returned"
        return f"deadlock: {', '.join(waits)}{gone if self.gone else ''}, and nothing is under way"


def collective(op, arrays, root=0, reduce="sum"):
    """[the array that each rank gets] from a collective; rank r contributes the flat array arrays[r].

    Reductions go from rank 0 up, in its dtype.
    """
    size = len(arrays)
    if op == "broadcast":
        return [arrays[root]] * size
    if op == "all_gather":
        return [np.concatenate(arrays)] * size
    total = arrays[0].copy()
    with np.errstate(all="ignore"):
        for array in arrays[1:]:
            REDUCTIONS[reduce](total, array, out=total)
        if reduce == "avg":
            total /= total.dtype.type(size)
    return [total] * size if op == "all_reduce" else np.split(total, size)


def ring_traffic(op, size, count, root=0):
    """For each rank, the sizes (in numbers) of the messages it sends if a ring algorithm does the collective.

    Every rank contributes `count` numbers. all_reduce: 2 (n - 1) of n pieces, as equal as possible.
    reduce_scatter: n - 1 pieces. all_gather: n - 1 arrays. broadcast: the array goes from rank to rank,
    beginning at the root, so that the rank before the root sends nothing.
    """
    if op == "broadcast":
        return [[count] * ((rank + 1) % size != root) for rank in range(size)]
    if op == "all_gather":
        return [[count] * (size - 1)] * size
    pieces = [count // size + (piece < count % size) for piece in range(size)]
    rounds = range(size - 1)
    first = [[pieces[(rank - s) % size] for s in rounds] for rank in range(size)]
    second = [[pieces[(rank + 1 - s) % size] for s in rounds] for rank in range(size)]
    return first if op == "reduce_scatter" else [a + b for a, b in zip(first, second, strict=True)]
