"""Finds data hazards between streams of a virtual device, by vector clocks.

An operation happens after all earlier ones in its stream, after everything its stream has waited for, and
after everything the host knew to be done when it issued the operation. Two operations without such a
happens-before relation may run in either order, whatever this device's timing is. If one of them writes what
the other reads or writes, that is a hazard.
"""

from dataclasses import dataclass

from warplab.crossing.device_client import VirtualDeviceError

MAX_COMPARED = 5_000_000
"""Limit of comparisons and clock entries for one device: about a second of the judge's time."""
KEPT = 10
"""How many comparisons a clock entry that an event stores counts for: it takes some forty bytes of memory."""


@dataclass(frozen=True)
class Span:
    """A part of an array that an operation reads or writes.

    number: the operation's number in its stream, from 1. operation: its description.
    """

    start: int
    stop: int
    writes: bool
    stream: int
    number: int
    operation: str

    def before(self, clock):
        """Whether this operation happens before an operation with that clock."""
        return clock.get(self.stream, 0) >= self.number


class StreamHazards:
    """Keeps the vector clocks of a device's host, streams and events, and the accesses to compare.

    A clock is {stream: how many of its operations happen before}.
    """

    def __init__(self):
        self.host, self.streams, self.events = {}, {}, {}
        self.open = {}  # {array: [Span that later operations have to be compared with]}
        self.compared = 0

    def begins(self, stream, operation, writes, reads):
        """A copy or launch is put into a stream. writes, reads: lists of (array, start, stop).

        Returns its number in the stream. Raises VirtualDeviceError, which names both operations, if it
        conflicts with one that is not ordered with it.
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
        """Whether the host has waited for this operation of a stream."""
        self._work(1, "copies to the host")
        return self.host.get(stream, 0) >= number

    def _check(self, access, other, known):
        self._work(1, "accesses to parts of one array")
        overlap = access.start < other.stop and other.start < access.stop
        if not known and overlap and (access.writes or other.writes):
            raise VirtualDeviceError(
                f"{other.operation} in stream {other.stream} and {access.operation} in stream "
                f"{access.stream} are not ordered, and {shared(other, access)}, elements "
                f"{max(access.start, other.start):,} to {min(access.stop, other.stop):,} of the array: put "
                "both into one stream, let one wait for an event of the other, or give each its own array"
            )

    def recorded(self, event, stream):
        """An event is recorded: it gets the clock of its stream, with all operations issued there so far."""
        clock = self._joined(stream, self.host)
        self._work(KEPT * len(clock), "events that stand for many streams")
        self.events[event] = dict(clock)

    def waited(self, event, stream):
        """A stream waits for an event."""
        self._joined(stream, self.events.get(event, {}))

    def joined(self, streams, stream):
        """Streams wait for all operations of another one, as at the begin and end of a graph."""
        for other in streams:
            self._joined(other, self.streams.get(stream, {}))

    def synchronized(self, stream=None, event=None):
        """The host waits for an event, a stream, or (both None) for everything."""
        if event is not None:
            clocks = [self.events.get(event, {})]
        else:
            clocks = self.streams.values() if stream is None else [self.streams.get(stream, {})]
        for clock in list(clocks):
            self._work(len(clock), "streams")
            self.host = latest(self.host, clock)
        for array, accesses in self.open.items():
            self._work(len(accesses), "accesses to parts of arrays")
            self.open[array] = [access for access in accesses if not access.before(self.host)]

    def _joined(self, stream, clock):
        joined = self.streams[stream] = latest(self.streams.get(stream, {}), clock)
        self._work(len(joined), "streams that wait for each other")
        return joined

    def _work(self, amount, what):
        self.compared += amount
        if self.compared > MAX_COMPARED:
            raise VirtualDeviceError(
                f"too many {what} are under way at once to compare: synchronize earlier, or use fewer"
            )


def latest(first, second):
    """The join of two clocks: for each stream the larger number."""
    return first | {stream: max(number, first.get(stream, 0)) for stream, number in second.items()}


def shared(first, second):
    """How two accesses to one array conflict, as a clause."""
    if first.writes and second.writes:
        return "both write to one array"
    writer, reader = ("second", "first") if second.writes else ("first", "second")
    return f"the {writer} writes what the {reader} reads"
