"""The *function* crossing: the student's process gets plain inputs and returns plain results."""

import copy

from warplab.crossing.values import check_callable, given, modified, read_results


def question(task, case):
    """The inputs that the task's arguments name, and the kinds of its results."""
    return {"inputs": given(task, case), "returns": dict(task.returns)}


def answer(question, names, entry, plan, call):
    """Call the student's function on copies of the inputs."""
    check_callable(entry, names[0])
    held = copy.deepcopy(question["inputs"])
    outputs = read_results(question["returns"], entry(*held.values()), names[0])
    return {"outputs": outputs, "modified": modified(question["inputs"], held)}
