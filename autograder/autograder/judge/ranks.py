"""Tasks that run as several ranks: one student's process each, and a router between them that the judge owns."""

import contextlib
from dataclasses import replace

import warplab.task
from autograder.judge.faults import blamed_on
from autograder.judge.process import STEP_BYTES, STEP_MESSAGES, Lost, Process
from autograder.sandbox.messages import Answer, Call, Executed, Failure, Missing, Question, Reply
from warplab import crossing
from warplab.crossing import ranks
from warplab.task import Outcome

LEAST_MIB = 1024  # of memory for one rank: PyTorch and a little


def outcomes_of_ranks(task, cases, cells, launcher, limits):
    """Run the cells and then every case in as many processes as it has ranks, which share the limits. Returns ([Outcome], Lost or None)."""
    outcomes = []
    try:
        with contextlib.ExitStack() as stack:
            size = max(task.world(case.inputs) for case in cases)
            share = replace(limits, memory_mib=max(limits.memory_mib // size, LEAST_MIB), disk_mib=limits.disk_mib // size)
            processes = [stack.enter_context(Process(launcher, "student", share)) for _ in range(size)]
            errors = {}
            for cell in cells:
                for process in processes:
                    process.begin_step(limits.step_seconds)
                    process.send(cell)
                told = [process.receive((Executed,)).error for process in processes]
                if any(told):
                    errors[cell.id] = next(filter(None, told))
            for process in processes:
                process.begin_step(limits.step_seconds)
                process.channel.allow(STEP_BYTES // size, STEP_MESSAGES // size)  # together no more than one process
            for case in cases:
                with blamed_on(task):
                    outcomes.append(_case(task, case, processes[: task.world(case.inputs)], errors))
    except Lost as lost:
        return outcomes, lost
    return outcomes, None


def reason(reply, errors):
    """The sentence for a Failure, or for a Missing name: the error of the cell that should have defined it."""
    if type(reply) is Failure:
        return reply.error
    told = next((f"its cell stopped with {text}" for text in reversed(errors.values())), "no cell defines it")
    return f"`{reply.name[:80]}` does not exist: {told}"


def _case(task, case, processes, errors):
    router = ranks.router(task, case)
    for rank, process in enumerate(processes):
        process.send(Question(task.crossing, task.entry, None, ranks.question(task, case, rank)))
    answers, failures = {}, {}
    while len(answers) + len(failures) < len(processes):
        for rank, message in _arrived(processes, answers.keys() | failures.keys()):
            if type(message) is Call:
                replies = router.call(rank, message.data)
            else:
                if type(message) is Answer:
                    answers[rank] = message.data
                else:
                    failures[rank] = reason(message, errors)
                replies = router.leave(rank)
            for to, reply in replies:
                processes[to].send(Reply(reply))
    if failures:
        return Outcome(case.name, error=failures[ranks.cause(failures)])
    try:
        result = crossing.finish(task, case, ranks.together(answers, router), router)
    except crossing.Refused as refused:
        return Outcome(case.name, error=str(refused))
    return warplab.task.outcome_of(case, result)


def _arrived(processes, done):
    """[(rank, message)] of the ranks that still run, at least one."""
    running = [process for rank, process in enumerate(processes) if rank not in done]
    while True:
        found = []
        for rank, process in enumerate(processes):
            message = None if rank in done else process.take((Answer, Failure, Missing, Call))
            if message is not None:
                found.append((rank, message))
        if found:
            return found
        for process in Process.wait(running):
            process.fill()
