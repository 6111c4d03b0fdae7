"""The process that runs kernels. It gets orders and gives results: no Python of a student's, no expected value, no score.

`main(folder, fd)` serves the grader on the socket `fd` until the other end is closed.
"""

import os
import socket

from autograder.sandbox.messages import BadMessage, Channel, Closed, Done, Prepare, Prepared, Ready, Sample, Sampled, Work, Yardstick
from warplab.crossing import Order, execute
from warplab.crossing.timed import KernelSampler, YardstickSampler


def main(folder, fd):
    """Execute one order after another, each from fresh memory; or take samples of what was prepared."""
    channel = Channel(socket.socket(fileno=fd))
    sampler = None
    try:
        channel.send(Ready())
        while True:
            message = channel.receive((Work, Prepare, Yardstick, Sample))
            if type(message) is Work:
                _reply(channel, execute(Order.from_plain(message.order)))
            elif type(message) is Sample:
                channel.send(Sampled(*sampler.sample(message.number)))
            else:
                sampler, bandwidth = prepared(message)
                channel.send(Prepared(bandwidth))
    except Closed:
        os._exit(0)


def prepared(message):
    """A warm sampler for what a message asks, and the device's measured bandwidth in bytes a second."""
    from warplab.cuda_timer import cuda_timer

    timer = cuda_timer()
    if type(message) is Prepare:
        sampler = KernelSampler([Order.from_plain(order) for order in message.orders], timer)
    else:
        sampler = YardstickSampler(message.call, message.inputs, timer)
    sampler.warm_up()
    return sampler, timer.bandwidth()


def _reply(channel, result):
    try:
        channel.send(Done(**vars(result)))
    except BadMessage as problem:
        channel.send(Done({}, {}, [], f"the kernel's results could not be sent back: {problem}"))
