"""The process that runs students' kernels: PTX, never their Python.

It receives orders and returns results; it knows no expected value and no score. `main(folder, fd)` serves
the grader on the socket `fd` until the other end is closed.
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
    """Execute one order after another, each in fresh memory, or take timing samples of a prepared kernel.

    An exception is sent back as Broken; the grader decides whose fault it is.
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
                sampler, bandwidth = prepare_sampler(message)
                channel.send(Prepared(bandwidth))
        except Closed:
            raise
        except Exception as problem:  # noqa: BLE001 - errors of CUDA, or a missing module
            channel.send(Broken(f"{type(problem).__name__}: {problem}"))

    serve(fd, (RunOrder, Prepare, Yardstick, Sample), handle)


def prepare_sampler(message: Prepare | Yardstick) -> tuple[Sampler, float]:
    """(a warmed-up sampler for the message's kernel, the device's measured bandwidth in bytes a second)."""
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
