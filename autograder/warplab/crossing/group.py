"""A torch.distributed backend, "router", whose messages go through `call(message) -> reply` to the judge.

A student writes `import torch.distributed as dist` and dist.send, recv, isend, irecv, batch_isend_irecv,
barrier, broadcast, all_reduce, all_gather, all_gather_single (all_gather_into_tensor), reduce_scatter_single
(reduce_scatter_tensor). The default group is initialised when the function is called. The judge's router
trusts none of this and checks and counts by itself.

As with gloo, a send completes when the other rank receives, and every work must be waited for. A tensor is
read when its rank next waits for anything, so a change before that is seen in the message. Receiving into a
tensor that is part of an unfinished message is refused at once.
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
UNSUPPORTED = {
    "alltoall": "all_to_all; use isend and recv",
    "all_to_all_single": "all_to_all_single; use isend and recv",
    "gather": "gather; use all_gather, or send and recv",
    "scatter": "scatter; use broadcast, or send and recv",
    "reduce": "reduce; use all_reduce, or send and recv",
    "reduce_scatter": "reduce_scatter of lists; use reduce_scatter_single",
    "recv_anysource": "recv from any rank; name one: dist.recv(tensor, src=...)",
    "new_group": "new_group: all ranks are one group",
}
_opening = threading.Lock()


class RouterWork(dist.Work):
    """The handle that isend, irecv and collectives return; wait() returns when the message has arrived.

    memory: (first address, end address, whether the message fills it, the tensor). Holding the tensor keeps
    its memory from being reused while the message is unfinished.
    """

    def __init__(self, group, number, what, receive, memory=None):
        super().__init__()
        self._group, self._number, self.what, self._receive, self._over = group, number, what, receive, False
        self.memory = memory

    def wait(self, timeout=None):
        """Wait until the message has arrived; returns True. Raises CommError if it never will.

        `timeout` is ignored; the judge limits the time.
        """
        if not self._over:
            reply = self._group.ask("wait", self._number)
            self._over = True
            del self._group.open[self._number]
            if self._receive:
                self._receive(reply["array"])
        return True

    def is_completed(self):
        """Whether the message has arrived; if so, wait() need not be called."""
        return self._over or (self._group.ask("test", self._number).get("done", True) and self.wait())

    def is_success(self):
        """Whether wait() has returned."""
        return self._over


class RouterGroup(dist.ProcessGroup):
    """The process group of all ranks of a case, in one rank."""

    def __init__(self, rank, size, call):
        super().__init__(rank, size)  # pyright: ignore[reportCallIssue] - torch has two, its stubs one
        self._call = call
        self._posts, self._number = [], 0
        self.open = {}  # {number: RouterWork that was not waited for yet}

    def getBackendName(self):
        return NAME

    def shutdown(self):
        pass

    @property
    def _device_types(self):
        """Refuses collectives that pickle Python objects: only those of torch ask for this property."""
        raise CommError(
            "this collective pickles Python objects, and only tensors go between the ranks: "
            "send numbers as a tensor"
        )

    def ask(self, kind, number):
        """Send the posts so far and a question about post `number`; returns the reply.

        kind: "wait" or "test". Raises CommError if the router refuses.
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
        """Raise CommError if the function began work that it never waited for."""
        if self.open:
            what = next(iter(self.open.values())).what
            raise CommError(
                f"{what} was begun and never waited for: call wait() on what it returns, or it may not arrive"
            )

    def _post(self, what, op, tensor=None, receive=None, memory=None, **options):
        """Queue a post with the tensor to send, if any. Returns its work; wait() calls receive(array)."""
        self._posts.append(({"op": op} | options, tensor))
        work = RouterWork(self, self._number, what, receive, memory)
        self.open[self._number] = work
        self._number += 1
        return work

    def send(self, tensors, to, tag):
        tensor = _valid("send", tensors[0])
        what = f"isend to rank {to}"
        memory = self._claim_memory(what, tensor, filled=False)
        return self._post(what, "send", tensor, memory=memory, peer=to, tag=tag)

    def recv(self, tensors, frm, tag):
        tensor = _valid("recv", tensors[0])
        into = _filler(f"recv from rank {frm}", tensor)
        what = f"irecv from rank {frm}"
        memory = self._claim_memory(what, tensor, filled=True)
        return self._post(what, "recv", None, into, memory, peer=frm, tag=tag)

    def _claim_memory(self, what, tensor, filled):
        """The `memory` of a RouterWork. Raises CommError if it overlaps that of an unfinished message.

        Two sends may share memory; a receive must have its own. filled: whether this message is a receive.
        """
        first, end = tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()
        for other in self.open.values():
            start, stop, is_filled, _ = other.memory or (0, 0, False, None)
            if (filled or is_filled) and first < stop and start < end:
                raise CommError(
                    f"{what} uses memory of the tensor of {other.what}, which has not completed: "
                    "call its wait() first, or use another tensor (`torch.empty_like` makes one)"
                )
        return first, end, filled, tensor

    def barrier(self, opts=None):
        return self._post("barrier", "barrier")

    def broadcast(self, tensors, opts):
        tensor = _valid("broadcast", tensors[0])
        return self._post("broadcast", "broadcast", tensor, _filler("broadcast", tensor), root=opts.rootRank)

    def allreduce(self, tensors, opts):
        tensor = _valid("all_reduce", tensors[0])
        into = _filler("all_reduce", tensor)
        return self._post("all_reduce", "all_reduce", tensor, into, reduce=_operation(opts))

    def allgather(self, outputs, inputs, opts=None):
        tensor, parts = _valid("all_gather", inputs[0]), [_valid("all_gather", part) for part in outputs[0]]
        if len(parts) != self.size():
            raise CommError(
                f"all_gather needs {self.size()} tensors, one for each rank, and got {len(parts)}"
            )
        fillers = [_filler(f"all_gather of rank {rank}", part) for rank, part in enumerate(parts)]

        def receive(array):
            for fill, part in zip(fillers, array.reshape(self.size(), -1), strict=True):
                fill(part)

        return self._post("all_gather", "all_gather", tensor, receive)

    def all_gather_single(self, output, tensor, opts=None):
        what = "all_gather_single"
        into = _filler(what, _valid(what, output))
        return self._post(what, "all_gather", _valid(what, tensor), into)

    def reduce_scatter_single(self, output, tensor, opts):
        what = "reduce_scatter_single"
        into, tensor = _filler(what, _valid(what, output)), _valid(what, tensor)
        return self._post(what, "reduce_scatter", tensor, into, reduce=_operation(opts))

    # The names before PyTorch 2.13; its stubs name the parameters differently.
    _allgather_base = all_gather_single  # pyright: ignore[reportAssignmentType]
    _reduce_scatter_base = reduce_scatter_single  # pyright: ignore[reportAssignmentType]


def _unsupported(text):
    def method(self, *_, **__):
        raise CommError(f"not available between ranks: {text}")

    return method


for _name, _text in UNSUPPORTED.items():
    setattr(RouterGroup, _name, _unsupported(_text))


def _operation(opts):
    known = [name for name in REDUCTIONS if opts.reduceOp == getattr(dist.ReduceOp, name.upper())]
    if not known:
        names = ", ".join(map(str.upper, REDUCTIONS))
        raise CommError(
            f"not available between ranks: the reduction {opts.reduceOp.op.name}; use one of {names}"
        )
    return known[0]


def _valid(what, tensor):
    """The tensor, detached. Raises CommError unless it is contiguous and on the CPU."""
    if tensor.device.type != "cpu":
        raise CommError(f"{what}: ranks have only CPUs, and the tensor is on {tensor.device}: use .cpu()")
    if not tensor.is_contiguous():
        raise CommError(
            f"{what}: the tensor of shape {tuple(tensor.shape)} is not contiguous; take tensor.contiguous()"
        )
    return tensor.detach()


def _flat(tensor):
    """A copy of the tensor's values as a flat array."""
    try:
        return as_array(tensor.reshape(-1), _dtype(tensor))
    except (NotPlain, TypeError) as problem:
        raise CommError(f"a tensor of {_dtype(tensor)} cannot be sent: {problem}; convert it first") from None


def _filler(what, tensor):
    """A function that copies a received array into `tensor`; it raises CommError if size or dtype differ."""

    def fill(array):
        if array.size != tensor.numel() or array.dtype.name != _dtype(tensor):
            has = f"the tensor for them has {tensor.numel():,} of {_dtype(tensor)}: make both equal"
            raise CommError(f"{what}: {array.size:,} numbers of {array.dtype} arrived, and {has}")
        tensor.copy_(torch.from_numpy(array).reshape(tensor.shape))

    return fill


def _dtype(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _create(options, call):
    """Creates the backend for torch.distributed. new_group also calls this, without `call`; it is refused."""
    if call is None:
        raise CommError(
            "the ranks are one group, and it is open already: "
            "neither init_process_group nor new_group is needed"
        )
    return RouterGroup(options.group_rank, options.group_size, call)


dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


@contextlib.contextmanager
def opened(call, rank, size):
    """Initialise torch.distributed's default group, with `size` ranks, as rank `rank`, for the block.

    It is per process, or per thread inside thread_worlds().
    """
    with _opening:
        hook = sys.excepthook
        store = dist.HashStore()  # pyright: ignore[reportPrivateImportUsage] - its stubs lack it
        dist.init_process_group(NAME, store=store, rank=rank, world_size=size, pg_options=call)
        sys.excepthook = hook  # init_process_group wraps the hook at each call
    group = dist.group.WORLD
    assert isinstance(group, RouterGroup)
    try:
        yield
        group.finish()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


class _ThreadWorlds(threading.local):
    """A thread-local replacement of distributed_c10d._World, torch's registry of process groups."""

    def __init__(self):
        self.default_pg, self.group_count, self.comms = None, 0, []
        self.pg_map, self.pg_names, self.pg_group_ranks, self.pg_backend_config = {}, {}, {}, {}
        self.tags_to_pg, self.pg_to_tag, self.pg_coalesce_state = {}, {}, {}


@contextlib.contextmanager
def thread_worlds():
    """Let each thread be its own rank for the block. A group of the process itself is hidden and kept.

    `_world` is torch's extension point for this; torch's own multi-threaded tests use it the same way.
    """
    isolate = c10d_library._set_thread_isolation_mode  # pyright: ignore[reportAttributeAccessIssue]
    kept, c10d._world = c10d._world, _ThreadWorlds()
    isolate(True)
    try:
        yield
    finally:
        isolate(False)
        c10d._world = kept
