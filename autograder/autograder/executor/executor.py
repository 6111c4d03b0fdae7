"""The process that runs kernels.

It gets orders and gives results: no Python of a student's, no expected value, no score. `main(folder, fd)`
serves the grader on the socket `fd` until the other end is closed.
"""

from autograder.sandbox.messages import (
    BadMessage,
    Broken,
    Channel,
    Closed,
    Done,
    Prepare,
    Prepared,
    RunOrder,
    Sample,
    Sampled,
    Yardstick,
    serve,
)
from warplab.crossing import Order, Outcome, execute
from warplab.crossing.timed import KernelSampler, YardstickSampler

Sampler = KernelSampler | YardstickSampler


def main(folder: str, fd: int) -> None:
    """Execute one order after another, each from fresh memory; or take samples of what was prepared.

    What fails is told, and the grader decides whose fault it is.
    """
    sampler: Sampler | None = None

    def handle(channel: Channel, message: RunOrder | Prepare | Yardstick | Sample) -> None:
        nonlocal sampler
        try:
            if isinstance(message, RunOrder):
                _reply(channel, execute(Order.from_plain(message.order)))
            elif isinstance(message, Sample):
                assert sampler is not None  # the grader prepares before it samples
                channel.send(Sampled(*sampler.sample(message.number)))
            else:
                sampler, bandwidth = prepared(message)
                channel.send(Prepared(bandwidth))
        except Closed:
            raise
        except Exception as problem:  # noqa: BLE001 - CUDA's errors, or a module that is not there
            channel.send(Broken(f"{type(problem).__name__}: {problem}"))

    serve(fd, (RunOrder, Prepare, Yardstick, Sample), handle)


def prepared(message: Prepare | Yardstick) -> tuple[Sampler, float]:
    """A warm sampler for what a message asks, and the device's measured bandwidth in bytes a second."""
    from warplab.timing.cuda_timer import cuda_timer

    timer = cuda_timer()
    if isinstance(message, Prepare):
        sampler = KernelSampler([Order.from_plain(order) for order in message.orders], timer)
    else:
        sampler = YardstickSampler(message.call, message.inputs, timer)
    sampler.warm_up()
    return sampler, timer.bandwidth()


def _reply(channel: Channel, outcome: Outcome) -> None:
    try:
        channel.send(Done(**{name: getattr(outcome, name) for name in Done.__struct_fields__}))
    except BadMessage as problem:
        channel.send(Done({}, {}, (), f"the kernel's results could not be sent back: {problem}"))
