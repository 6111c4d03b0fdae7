"""Processes that stay open between the cells of a page, each a rank of one torch.distributed group.

    ranks = Ranks(4)
    ranks.run(lambda x: (dist.get_rank(), x), 7)        # [(0, 7), (1, 7), (2, 7), (3, 7)]
    ranks.close()

torchrun starts new processes for every script, and each of them imports torch. Here one process imports it
and forks the ranks.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path

import torch
from numba import cloudpickle  # pickles functions of a page by value, as they are in no importable module

PRELOAD = [
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "warplab.models.networks",
    "warplab.models.rank_pool",
]  # fully_shard imports the first
PATIENCE_S = 120.0  # for a call; a collective without its partners times out a little earlier, in its rank


class RankError(RuntimeError):
    """A rank raised an error, ended or did not answer in time. The group is closed; open another."""


class Ranks:
    """`count` processes in one torch.distributed group, over NCCL if there is a GPU for each, else over gloo
    on the loopback interface. patience: seconds that a call may take.
    """

    def __init__(self, count: int, patience: float = PATIENCE_S):
        if count < 1:
            raise ValueError(f"{count} ranks: ask for 1 or more")
        self.backend = "nccl" if torch.cuda.device_count() >= count else "gloo"
        self._patience = patience
        self._folder = tempfile.TemporaryDirectory()
        meeting = Path(self._folder.name, "meeting")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOAD)
        self._ends, self._processes = [], []
        for rank in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, str(meeting), self.backend, rank, count, patience), daemon=True
            )
            process.start()
            theirs.close()
            self._ends.append(ours)
            self._processes.append(process)

    def run(self, function, *arguments) -> list:
        """Call `function(*arguments)` in all ranks; returns their results by rank, with tensors on the CPU.

        Tensors among the arguments are copied to each rank's own device. Raises RankError, with the rank, if
        one raises an error or does not answer in time.
        """
        if not self._ends:
            raise RankError("these ranks are closed; open others with Ranks(count)")
        order, answers = (cloudpickle.dumps(function), _packed(arguments)), [b""] * len(self._ends)
        waiting, until = (
            dict(zip(self._ends, range(len(self._ends)), strict=True)),
            time.monotonic() + self._patience,
        )
        try:
            for end in self._ends:
                end.send(order)
            while waiting:
                ready = wait(list(waiting), max(0.0, until - time.monotonic()))
                if not ready:
                    late = ", ".join(map(str, waiting.values()))
                    raise RankError(
                        f"no answer within {self._patience:g} s from rank {late}: does it wait for a message "
                        "that nobody sends?"
                    )
                for end in [end for end in waiting if end in ready]:
                    rank = waiting.pop(end)
                    answers[rank], error = end.recv()
                    if error:
                        raise RankError(f"rank {rank}: {error}")
        except (EOFError, ConnectionError):
            self.close()
            raise RankError("a rank ended without an answer") from None
        except BaseException:
            self.close()
            raise
        return [torch.load(io.BytesIO(data), map_location="cpu", weights_only=False) for data in answers]

    def close(self):
        """End the processes. An open group also ends with the process that opened it."""
        for process in self._processes:
            # killed, because a rank that hangs in a library would not react to SIGTERM
            process.kill()
        for process in self._processes:
            process.join()
        for end in self._ends:
            end.close()
        self._processes, self._ends = [], []
        self._folder.cleanup()


def _packed(value):
    buffer = io.BytesIO()
    torch.save(value, buffer, pickle_module=cloudpickle)
    return buffer.getvalue()


def _serve(pipe, meeting, backend, rank, count, patience):
    """The process of one rank: joins the group, then serves calls until the pipe is closed."""
    import warnings

    import torch.distributed as dist

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # the ranks share the cores
    where = f"cuda:{rank}" if backend == "nccl" else "cpu"
    torch.set_default_device(where)
    if sys.platform == "linux":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        backend,
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=0.9 * patience),
    )
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        try:
            arguments = torch.load(io.BytesIO(arguments), map_location=where, weights_only=False)
            answer = _packed(cloudpickle.loads(function)(*arguments)), ""
        except Exception as error:  # noqa: BLE001 - sent back to the caller
            answer = b"", traceback.format_exception_only(error)[-1].strip()
        pipe.send(answer)
