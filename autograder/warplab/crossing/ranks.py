"""The *ranks* crossing: n processes run one function, and all messages between them pass the judge's router.

The student's function uses torch.distributed, whose default group is initialised with the backend of
warplab.crossing.group.
"""

import copy
import threading

import numpy as np

from warplab.crossing.endless import join_all
from warplab.crossing.explain import Refused
from warplab.crossing.router import Router
from warplab.crossing.values import Result, check_callable, modified, plain_copy, read_results, validated


def question(task, case, rank=0):
    """One rank's inputs: its own part of each input in task.sharded, the whole of the others."""
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
    """Plain data with each array replaced by a tensor that shares its memory."""
    if type(value) is np.ndarray:
        import torch

        return torch.from_numpy(value)
    if type(value) is list:
        return [as_tensors(inner) for inner in value]
    return value


def result_name(name, rank):
    """The name of one rank's result, such as "out[2]" for rank 2."""
    return f"{name}[{rank}]"


def router(task, case):
    """A new router for one case."""
    return Router(task.world(case.inputs), task.rule)


def run_here(task, case, entry, hub):
    """Run all ranks as threads of this process. hub: the case's router.

    Returns {rank: answer}; raises the exception of the rank that is to blame (root_cause).
    """
    from warplab.crossing.group import thread_worlds

    lock, answers, errors, inbox = threading.Condition(), {}, {}, {}

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
        raise errors[root_cause({rank: f"{type(error).__name__}: {error}" for rank, error in errors.items()})]
    return answers


def root_cause(told):
    """The rank whose error probably caused the others'. told: {rank: "Type: text"}.

    Communication errors, and deadlocks most of all, usually follow from another rank's error.
    """
    kinds = ("CommError: deadlock", "CommError")
    return min(told, key=lambda rank: (*map(told[rank].startswith, kinds), rank))


def merged(answers, hub):
    """The answers of all ranks merged into one, with results named "out[0]", "out[1]", ...

    Raises Refused if one is not an answer, or if the router refused a message.
    """
    if hub.failed:
        raise Refused(hub.failed)
    outputs, changed = {}, []
    for rank, data in sorted(answers.items()):
        told = validated(data, Result, f"the result of rank {rank}")
        outputs |= {result_name(name, rank): value for name, value in told.outputs.items()}
        changed += told.modified
    return {"outputs": outputs, "modified": changed}
