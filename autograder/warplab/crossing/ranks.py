"""The *ranks* crossing: n processes run one function; every byte between them passes the judge's router.

The student's function calls torch.distributed, whose group is open when it begins: warplab.crossing.group is
the backend behind it.
"""

import copy
import threading

import numpy as np

from warplab.crossing.endless import join_all
from warplab.crossing.explain import Refused
from warplab.crossing.router import Router
from warplab.crossing.values import Result, check_callable, modified, of_form, plain_copy, read_results


def question(task, case, rank=0):
    """One rank's inputs: its own part of those in task.sharded, all of the others."""
    inputs = {
        name: plain_copy(case.inputs[name][rank] if name in task.sharded else case.inputs[name])
        for name in task.arguments
    }
    return {"inputs": inputs, "rank": rank, "size": task.world(case.inputs), "returns": dict(task.returns)}


def answer(question, names, entry, plan, call):
    """Call the student's function as one rank; arrays arrive as tensors."""
    from warplab.crossing.group import opened

    check_callable(entry, names[0])
    held = copy.deepcopy(question["inputs"])
    with opened(call, question["rank"], question["size"]):
        returned = entry(*(as_tensors(value) for value in held.values()))
    return {
        "outputs": read_results(question["returns"], returned, names[0]),
        "modified": modified(question["inputs"], held),
    }


def as_tensors(value):
    """The same data with a tensor over the memory of each array."""
    if type(value) is np.ndarray:
        import torch

        return torch.from_numpy(value)
    if type(value) is list:
        return [as_tensors(inner) for inner in value]
    return value


def result_name(name, rank):
    """ "out[2]": result `out` of rank 2."""
    return f"{name}[{rank}]"


def router(task, case):
    """A fresh router for one case."""
    return Router(task.world(case.inputs), task.rule)


def run_here(task, case, entry, hub):
    """All ranks as threads of this process, with the case's router between them.

    Returns {rank: answer}; raises what the first rank raised.
    """
    from warplab.crossing.group import thread_worlds

    lock, answers, errors = threading.Condition(), {}, {}
    inbox = {}

    def deliver(replies):
        inbox.update(replies)
        lock.notify_all()

    def call(rank):
        def ask(message):
            with lock:
                deliver(hub.call(rank, message))
                lock.wait_for(lambda: rank in inbox or hub.failed)
                return inbox.pop(rank, {"error": hub.failed})

        return ask

    def live(rank):
        try:
            answers[rank] = answer(question(task, case, rank), (task.entry, None), entry, None, call(rank))
        except BaseException as error:  # noqa: BLE001 - told to the student as the row's reason
            errors.setdefault(rank, error)
        finally:
            with lock:
                deliver(hub.leave(rank))

    threads = [threading.Thread(target=live, args=(rank,), daemon=True) for rank in range(hub.size)]
    with thread_worlds():
        for thread in threads:
            thread.start()
        join_all(threads)
    if errors:
        raise errors[cause({rank: f"{type(error).__name__}: {error}" for rank, error in errors.items()})]
    return answers


def cause(told):
    """The rank whose error explains the others', of {rank: "Type: text"}.

    A deadlock is often what another rank's mistake leads to.
    """
    kinds = ("CommError: deadlock", "CommError")
    return min(told, key=lambda rank: (*map(told[rank].startswith, kinds), rank))


def together(answers, hub):
    """The answers of all ranks as one: {"out[0]": ..., "out[1]": ...}.

    Refused if one is no answer, or the router refused a message.
    """
    if hub.failed:
        raise Refused(hub.failed)
    outputs, changed = {}, []
    for rank, data in sorted(answers.items()):
        told = of_form(data, Result, f"what rank {rank} sent back is not a result")
        outputs |= {result_name(name, rank): value for name, value in told.outputs.items()}
        changed += told.modified
    return {"outputs": outputs, "modified": changed}
