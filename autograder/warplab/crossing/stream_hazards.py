"""Which operations of a virtual device are ordered, by vector clocks, and what two of them may not share.

An operation comes after all before it in its stream, after what its stream has waited for, and after what the
host knew to be done when it gave the order. Two that no such chain ties together may run in either order,
whatever this device's timing makes of them today: if one of them writes what the other reads or writes, that
is a hazard.
"""

from dataclasses import dataclass

from warplab.crossing.device_client import VirtualDeviceError

MAX_COMPARED = 5_000_000
"""Comparisons and entries of clocks, of one device: the judge does this work, about a second of it."""
KEPT = 10
"""How much more an entry costs that an event keeps: it takes some forty bytes of the judge's."""


@dataclass(frozen=True)
class Span:
    """A part of an array that an operation reads or writes.

    number: which of its stream's operations it is, from 1.
    """

    start: int
    stop: int
    writes: bool
    stream: int
    number: int
    operation: str

    def before(self, clock):
        """Whether whoever has this clock comes after it."""
        return clock.get(self.stream, 0) >= self.number


class StreamHazards:
    """The order of a device's operations. A clock is {stream: how many of its operations are known done}."""

    def __init__(self):
        self.host, self.streams, self.events = {}, {}, {}
        self.open = {}  # array -> accesses that later operations have to be compared with
        self.compared = 0

    def begins(self, stream, operation, writes, reads):
        """A copy or launch is put into a stream. writes, reads: lists of (array, start, stop).

        Returns its number in the stream. Raises VirtualDeviceError, which names both, if it shares an array
        with an operation that is in no order with it.
        """
        clock = self._joined(stream, self.host)
        number = clock[stream] = clock.get(stream, 0) + 1
        for spans, does_write in ((reads, False), (writes, True)):
            for array, start, stop in spans:
                access = Span(start, stop, does_write, stream, number, operation)
                kept = []
                for other in self.open.get(array, ()):
                    known = other.before(clock)
                    self._check(access, other, known)
                    covered = known and start <= other.start and other.stop <= stop
                    if not covered or (other.writes and not does_write):
                        kept.append(other)
                self.open[array] = [*kept, access]
        return number

    def is_known(self, stream, number):
        """Whether the host knows that this operation of a stream is done."""
        self._work(1, "copies to the host")
        return self.host.get(stream, 0) >= number

    def _check(self, access, other, known):
        self._work(1, "parts of one array at once")
        overlap = access.start < other.stop and other.start < access.stop
        if not known and overlap and (access.writes or other.writes):
            raise VirtualDeviceError(
                f"{other.operation} in stream {other.stream} and {access.operation} in stream "
                f"{access.stream} are in no order, and {shared(other, access)}, elements "
                f"{max(access.start, other.start):,} to {min(access.stop, other.stop):,} of it: put both "
                "into one stream, let one wait for an event of the other, or give each an array of its own"
            )

    def recorded(self, event, stream):
        """An event is recorded: it stands for all that its stream has been given."""
        clock = self._joined(stream, self.host)
        self._work(KEPT * len(clock), "events that stand for many streams")
        self.events[event] = dict(clock)

    def waited(self, event, stream):
        """A stream waits for an event."""
        self._joined(stream, self.events.get(event, {}))

    def joined(self, streams, stream):
        """Streams wait for all that another one has been given: a graph begins, or ends."""
        for other in streams:
            self._joined(other, self.streams.get(stream, {}))

    def synchronized(self, stream=None, event=None):
        """The host waits for an event, a stream, or (both None) for everything; done is done."""
        if event is not None:
            clocks = [self.events.get(event, {})]
        else:
            clocks = self.streams.values() if stream is None else [self.streams.get(stream, {})]
        for clock in list(clocks):
            self._work(len(clock), "streams")
            self.host = latest(self.host, clock)
        for array, accesses in self.open.items():
            self._work(len(accesses), "parts of arrays")
            self.open[array] = [access for access in accesses if not access.before(self.host)]

    def _joined(self, stream, clock):
        joined = self.streams[stream] = latest(self.streams.get(stream, {}), clock)
        self._work(len(joined), "streams that wait for each other")
        return joined

    def _work(self, amount, what):
        self.compared += amount
        if self.compared > MAX_COMPARED:
            raise VirtualDeviceError(
                f"too many {what} are under way at once: synchronize before, or use fewer"
            )


def latest(first, second):
    """The clock of who has heard of both."""
    return first | {stream: max(number, first.get(stream, 0)) for stream, number in second.items()}


def shared(first, second):
    """What two accesses to one array do to each other, as a clause."""
    if first.writes and second.writes:
        return "both write to one array"
    writer, reader = ("second", "first") if second.writes else ("first", "second")
    return f"the {writer} writes what the {reader} reads"
