"""A torch.distributed backend, "router": its messages go through `call(message) -> reply` to the judge.

A student writes `import torch.distributed as dist` and dist.send, recv, isend, irecv, batch_isend_irecv,
barrier, broadcast, all_reduce, all_gather, all_gather_single (all_gather_into_tensor), reduce_scatter_single
(reduce_scatter_tensor); the group of all ranks is open when the function is called. Nothing here is trusted:
the router checks and counts at its own end.

As with gloo a send ends when the other rank receives, and every work must be waited for. A tensor is read
when its rank next waits for anything, so that a change on its way shows. To receive into a tensor that is on
its way is refused at once.
"""

import contextlib
import sys
import threading

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d_library
from torch.distributed import distributed_c10d as c10d

from warplab.crossing.arrays import NotPlain, as_array
from warplab.crossing.router import REDUCTIONS, CommError

NAME = "router"
CLOSED = {
    "alltoall": "all_to_all",
    "all_to_all_single": "all_to_all_single",
    "gather": "gather",
    "scatter": "scatter",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter, of lists; use reduce_scatter_single",
    "recv_anysource": "receiving from any rank; say which: dist.recv(tensor, src=...)",
    "new_group": "new_group: all ranks are one group",
}
_opening = threading.Lock()


class RouterWork(dist.Work):
    """What isend and its like return: wait() ends when the message is through, and fills the receiver.

    memory: of a message its first address, the one behind its last, whether it is filled, and the tensor
    itself, so that nobody else gets its place while the message is on its way.
    """

    def __init__(self, group, number, what, receive, memory=None):
        super().__init__()
        self._group, self._number, self.what, self._receive, self._over = group, number, what, receive, False
        self.memory = memory

    def wait(self, timeout=None):
        """True when the message is through; CommError if it never will be.

        The judge limits the time, not `timeout`.
        """
        if not self._over:
            reply = self._group.ask("wait", self._number)
            self._over = True
            del self._group.open[self._number]
            if self._receive:
                self._receive(reply["array"])
        return True

    def is_completed(self):
        """Whether the message is through; then nobody has to wait() any more."""
        return self._over or (self._group.ask("test", self._number).get("done", True) and self.wait())

    def is_success(self):
        """Whether wait() has returned."""
        return self._over


class RouterGroup(dist.ProcessGroup):
    """All ranks of a case, seen from one of them."""

    def __init__(self, rank, size, call):
        super().__init__(rank, size)  # pyright: ignore[reportCallIssue] - torch has two, its stubs one
        self._call = call
        self._posts, self._number = [], 0
        self.open = {}  # number -> work that nobody has waited for

    def getBackendName(self):
        return NAME

    def shutdown(self):
        pass

    @property
    def _device_types(self):
        """Where tensors may be. Of torch's collectives only those that pickle Python objects ask for it."""
        raise CommError(
            "this collective pickles Python objects, and only tensors go between the ranks: "
            "send numbers as a tensor"
        )

    def ask(self, kind, number):
        """The reply to the posts that have gathered and to a question about one of all.

        kind: "wait" or "test". CommError if refused.
        """
        posts, self._posts = self._posts, []
        message = {
            "posts": [post if tensor is None else post | {"array": _flat(tensor)} for post, tensor in posts],
            kind: number,
        }
        reply = self._call(message)
        if "error" in reply:
            raise CommError(reply["error"])
        return reply

    def finish(self):
        """CommError for work that the function began and did not wait for."""
        if self.open:
            what = next(iter(self.open.values())).what
            raise CommError(
                f"{what} was begun and never waited for: call wait() on what it returns, or it may not arrive"
            )

    def _post(self, what, op, tensor=None, receive=None, memory=None, **options):
        """A new post; `tensor` is what it brings. Returns its work, whose wait() calls receive(array)."""
        self._posts.append(({"op": op} | options, tensor))
        work = RouterWork(self, self._number, what, receive, memory)
        self.open[self._number] = work
        self._number += 1
        return work

    def send(self, tensors, to, tag):
        tensor = _sound("send", tensors[0])
        what = f"isend to rank {to}"
        memory = self._claimed(what, tensor, filled=False)
        return self._post(what, "send", tensor, memory=memory, peer=to, tag=tag)

    def recv(self, tensors, frm, tag):
        tensor = _sound("recv", tensors[0])
        into = _filler(f"what rank {frm} sent", tensor)
        what = f"irecv from rank {frm}"
        memory = self._claimed(what, tensor, filled=True)
        return self._post(what, "recv", None, into, memory, peer=frm, tag=tag)

    def _claimed(self, what, tensor, filled):
        """The tensor's memory, for RouterWork; CommError if another message on its way has some of it.

        Two sends may read the same numbers; nobody else may touch what a receive fills.
        """
        first, end = tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()
        for other in self.open.values():
            start, stop, is_filled, _ = other.memory or (0, 0, False, None)
            if (filled or is_filled) and first < stop and start < end:
                raise CommError(
                    f"{what} has the same tensor as {other.what}, which is still on its way: "
                    "call its wait() first, or take another tensor (`torch.empty_like` makes one)"
                )
        return first, end, filled, tensor

    def barrier(self, opts=None):
        return self._post("barrier", "barrier")

    def broadcast(self, tensors, opts):
        tensor = _sound("broadcast", tensors[0])
        return self._post("broadcast", "broadcast", tensor, _filler("broadcast", tensor), root=opts.rootRank)

    def allreduce(self, tensors, opts):
        tensor = _sound("all_reduce", tensors[0])
        into = _filler("all_reduce", tensor)
        return self._post("all_reduce", "all_reduce", tensor, into, reduce=_operation(opts))

    def allgather(self, outputs, inputs, opts=None):
        tensor, parts = _sound("all_gather", inputs[0]), [_sound("all_gather", part) for part in outputs[0]]
        if len(parts) != self.size():
            raise CommError(
                f"all_gather fills a list with a tensor for each of {self.size()} ranks, "
                f"and this list has {len(parts)}"
            )
        fillers = [_filler(f"all_gather of rank {rank}", part) for rank, part in enumerate(parts)]

        def receive(array):
            for fill, part in zip(fillers, array.reshape(self.size(), -1), strict=True):
                fill(part)

        return self._post("all_gather", "all_gather", tensor, receive)

    def all_gather_single(self, output, tensor, opts=None):
        what = "all_gather_single"
        into = _filler(what, _sound(what, output))
        return self._post(what, "all_gather", _sound(what, tensor), into)

    def reduce_scatter_single(self, output, tensor, opts):
        what = "reduce_scatter_single"
        into, tensor = _filler(what, _sound(what, output)), _sound(what, tensor)
        return self._post(what, "reduce_scatter", tensor, into, reduce=_operation(opts))

    # Their names before PyTorch 2.13, whose stubs have other names for the same parameters.
    _allgather_base = all_gather_single  # pyright: ignore[reportAssignmentType]
    _reduce_scatter_base = reduce_scatter_single  # pyright: ignore[reportAssignmentType]


def _closed(text):
    def method(self, *_, **__):
        raise CommError(f"the router of these ranks does not carry {text}")

    return method


for _name, _text in CLOSED.items():
    setattr(RouterGroup, _name, _closed(_text))


def _operation(opts):
    known = [name for name in REDUCTIONS if opts.reduceOp == getattr(dist.ReduceOp, name.upper())]
    if not known:
        names = ", ".join(map(str.upper, REDUCTIONS))
        raise CommError(
            f"the router of these ranks knows the reductions {names}; it does not know {opts.reduceOp}"
        )
    return known[0]


def _sound(what, tensor):
    """The tensor, if it is one that can cross: contiguous, on the CPU."""
    if tensor.device.type != "cpu":
        raise CommError(
            f"{what}: the ranks of this task have CPUs only, and the tensor is on {tensor.device}"
        )
    if not tensor.is_contiguous():
        raise CommError(
            f"{what}: the tensor of shape {tuple(tensor.shape)} is not contiguous; take tensor.contiguous()"
        )
    return tensor.detach()


def _flat(tensor):
    """The tensor's values as a flat array of its own."""
    try:
        return as_array(tensor.reshape(-1), _dtype(tensor))
    except (NotPlain, TypeError) as problem:
        raise CommError(f"a tensor of {_dtype(tensor)} does not cross: {problem}") from None


def _filler(what, tensor):
    """A function that puts an array into `tensor`; CommError if size or dtype differ."""

    def fill(array):
        if array.size != tensor.numel() or array.dtype.name != _dtype(tensor):
            has = f"the tensor for it has room for {tensor.numel():,} of {_dtype(tensor)}"
            raise CommError(f"{what} is {array.size:,} numbers of {array.dtype}, and {has}")
        tensor.copy_(torch.from_numpy(array).reshape(tensor.shape))

    return fill


def _dtype(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _create(options, call):
    """The backend's creator. new_group comes here too, without a `call`, for groups of some ranks."""
    if call is None:
        raise CommError(
            "the ranks are one group, and it is open already: "
            "neither init_process_group nor new_group is needed"
        )
    return RouterGroup(options.group_rank, options.group_size, call)


dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


@contextlib.contextmanager
def opened(call, rank, size):
    """torch.distributed's default group, of `size` ranks, is open here, as rank `rank`.

    Here is this process, or this thread (`thread_worlds`).
    """
    with _opening:
        hook = sys.excepthook
        store = dist.HashStore()  # pyright: ignore[reportPrivateImportUsage] - its stubs lack it
        dist.init_process_group(NAME, store=store, rank=rank, world_size=size, pg_options=call)
        sys.excepthook = hook  # it wraps the hook anew each time
    group = dist.group.WORLD
    assert isinstance(group, RouterGroup)
    try:
        yield
        group.finish()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


class _ThreadWorlds(threading.local):
    """What torch.distributed remembers of its groups, once for each thread.

    It has the attributes of distributed_c10d._World.
    """

    def __init__(self):
        self.default_pg, self.group_count, self.comms = None, 0, []
        self.pg_map, self.pg_names, self.pg_group_ranks, self.pg_backend_config = {}, {}, {}, {}
        self.tags_to_pg, self.pg_to_tag, self.pg_coalesce_state = {}, {}, {}


@contextlib.contextmanager
def thread_worlds():
    """Meanwhile each thread can be a rank of its own.

    A group that this process has open itself is out of sight, and kept.

    `_world` is torch's own point of extension for this, and its multi-threaded tests do the same.
    """
    isolate = c10d_library._set_thread_isolation_mode  # pyright: ignore[reportAttributeAccessIssue]
    kept, c10d._world = c10d._world, _ThreadWorlds()
    isolate(True)
    try:
        yield
    finally:
        isolate(False)
        c10d._world = kept
