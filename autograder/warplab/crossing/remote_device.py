"""The *device* crossing: the student's code has a client of the judge's virtual device, by messages."""

from warplab.crossing.device_client import DeviceClient
from warplab.crossing.values import check_callable, given, read_results

DEVICE = "device"  # name of the argument that gets the DeviceClient


def question(task, case):
    """The inputs that the task's arguments name, in order, except for the device."""
    inputs = given(task, case, (DEVICE,))
    return {"arguments": list(task.arguments), "inputs": inputs, "returns": dict(task.returns)}


def host(task, case):
    """The judge's VirtualDevice for one case."""
    return task.device(case.inputs)


def answer(question, names, entry, plan, call):
    """Call the student's function with a DeviceClient, whose methods send messages through `call`."""
    check_callable(entry, names[0])
    values = {DEVICE: DeviceClient(call)} | question["inputs"]
    returned = entry(*(values[name] for name in question["arguments"]))
    return {"outputs": read_results(question["returns"], returned, names[0])}
