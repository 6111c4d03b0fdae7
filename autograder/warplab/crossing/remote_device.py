"""The *device* crossing: the student's code holds a client of the judge's device; every call is a message."""

from warplab.crossing.device_client import DeviceClient
from warplab.crossing.values import check_callable, given, read_results

DEVICE = "device"  # the argument that is the client


def question(task, case):
    """The inputs that the task's arguments name, in order; the device itself is not data."""
    inputs = given(task, case, (DEVICE,))
    return {"arguments": list(task.arguments), "inputs": inputs, "returns": dict(task.returns)}


def host(task, case):
    """The judge's device for one case."""
    return task.device(case.inputs)


def answer(question, names, entry, plan, call):
    """Call the student's function with a client whose every method is call(message) -> reply."""
    check_callable(entry, names[0])
    values = {DEVICE: DeviceClient(call)} | question["inputs"]
    returned = entry(*(values[name] for name in question["arguments"]))
    return {"outputs": read_results(question["returns"], returned, names[0])}
