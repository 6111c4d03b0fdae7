"""A simulated asynchronous device on a virtual clock: a GPU as its host program sees it.

The judge owns a VirtualDevice. A student's code has a DeviceClient, whose methods send messages through
`call(message) -> reply`, both plain data, so that the two may be in different processes. No real time passes:
launches and copies keep the device's engines busy for a virtual time, in streams that only events and
synchronisation order. Data moves at those times, and the host sees only what it has waited for: a read that
does not wait, or relies on the clock, returns old values. Two conflicting operations in streams that are not
ordered are refused, even if this device's timing would let them run in the right order.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from warplab.crossing.device_client import DeviceClient, VirtualDeviceError
from warplab.crossing.stream_hazards import StreamHazards

MAX_CALLS = 100_000
MAX_BYTES = 16 << 20
MAX_STREAMS = 1_000
MAX_ELEMENTS = 100_000_000  # copied and computed in all, to bound the judge's work
MAX_SPANS = 90  # operations recorded for a drawing
COUNTS = "launches copies copied_bytes synchronizes clock_reads events waits reads replays others".split()
NOT_CAPTURED = ("synchronize", "read", "elapsed", "capture", "replay")


@dataclass(frozen=True)
class DeviceTiming:
    """The timing of a virtual device. All times in seconds.

    duration: one launch of the default work, without disturbances.
    noise: relative spread of that (a fixed zigzag, not random).
    cold_launches, cold_factor: the first launches are slower, as for compilation, caches and clocks.
    pending: work of another program that is queued already.
    outlier_every, outlier_factor: every n-th launch is interrupted and takes longer (0: never).
    launch_overhead, sync_overhead, clock_overhead: host time of each call.
    bandwidth: bytes a second of a copy between host and device, in each direction.
    copy_latency: constant time of each copy.
    """

    duration: float = 1e-3
    noise: float = 0.01
    cold_launches: int = 0
    cold_factor: float = 1.0
    pending: float = 0.0
    outlier_every: int = 0
    outlier_factor: float = 1.0
    launch_overhead: float = 5e-6
    sync_overhead: float = 3e-6
    clock_overhead: float = 1e-7
    bandwidth: float = 25e9
    copy_latency: float = 10e-6

    def of_launch(self, index):
        """Seconds that launch number `index` (from 0) keeps the device busy."""
        seconds = self.duration * (1 + self.noise * ((index * 5) % 7 - 3) / 3)
        if index < self.cold_launches:
            seconds *= self.cold_factor
        if self.outlier_every and index % self.outlier_every == self.outlier_every - 1:
            seconds *= self.outlier_factor
        return seconds


@dataclass(frozen=True)
class Work:
    """Something to launch: target = compute(*sources), arrays of one length, at `seconds_per_element`."""

    compute: Callable
    seconds_per_element: float


@dataclass
class _Operation:
    """An operation in a stream: a "launch", a copy "in" or "out", a "record" or a "wait" of an event.

    target, sources: the spans (array, start, stop) that it writes and reads; () for a launch without arrays.
    seconds: its duration, if its Work determines that. values: computed from what it read at its start.
    """

    kind: str
    stream: int
    event: int = -1
    target: tuple = ()
    sources: tuple = ()
    compute: Callable = np.positive
    seconds: float | None = None
    values: np.ndarray | None = None
    name: str = ""  # of a launch: its work


class VirtualDevice:
    """The judge's side: streams, three engines (compute, copies in, copies out), events, a host clock.

    A student's function uses it through a DeviceClient, which sends messages to `call` (`connect()` makes one
    in this process).

    host: {name: 1-D array} of page-locked host memory. unread: names of those that the host cannot read, so
    that their values have to go through the device.
    works: {name: Work}; by default there is one, "work", that takes `timing.duration` and touches no array.
    memory: total bytes of the device arrays that the host may allocate.
    """

    def __init__(self, timing, host=None, works=None, unread=(), memory=MAX_BYTES):
        self.timing, self.works, self.memory = timing, works or {}, memory
        self.now = 0.0
        self.ready = {0: timing.pending}  # {stream: when its last operation is done}
        self.engine = {"compute": timing.pending, "in": 0.0, "out": 0.0}
        self.events = []
        self.names = {name: index for index, name in enumerate(host or {})}
        self.arrays = [np.array(array) for array in (host or {}).values()]
        self.places = ["host"] * len(self.arrays)
        self.unread = {self.names[name] for name in unread}
        self.bytes = self.elements = 0
        self.graphs, self.capturing = [], None
        self.pending, self.sequence = [], 0
        self.seen = [array.copy() for array in self.arrays]  # host arrays with the values that the host reads
        self.unsynced = []  # (span, stream, number) of copies to the host that the host has not waited for
        self.hazards = StreamHazards()
        self.counts = dict.fromkeys(COUNTS, 0)
        self.spans = []  # (engine, stream, start, seconds, name) of the first operations
        self.host_spans = []  # ("call" or "wait", "host", start, seconds, operation) of the first calls

    def connect(self):
        """A client in this process."""
        return DeviceClient(self.call)

    def call(self, message):
        """Handle a message, such as {"op": "launch", "work": "work"}. Returns {"error": text} if refused."""
        if type(message) is not dict or type(message.get("op")) is not str:
            return {"error": "a message to the device must be a JSON object with an `op`"}
        if not all(map(_is_plain, message.values())):
            return {"error": f"{message['op'][:40]} takes numbers, names, and what this device has returned"}
        handler = getattr(self, f"_do_{message['op']}", None)
        if handler is None:
            return {"error": f"the device does not know the operation {message['op'][:40]!r}"}
        if sum(self.counts.values()) - self.counts["copied_bytes"] >= MAX_CALLS:
            return {"error": f"more than {MAX_CALLS:,} calls: does a loop never end?"}
        if self.capturing is not None and message["op"] in NOT_CAPTURED:
            why = "nothing runs until it is replayed; call end_capture() first"
            return {"error": f"{message['op']} is not possible while a graph is captured: {why}"}
        start = self.now
        try:
            return handler(message)
        except VirtualDeviceError as refused:
            return {"error": str(refused)}
        finally:
            if self.now > start and len(self.host_spans) < MAX_SPANS:
                kind = "wait" if message["op"] == "synchronize" else "call"
                self.host_spans.append((kind, "host", start, self.now - start, message["op"]))

    def counters(self):
        """{counter: float}: how often each call was made, the host's clock, when the last stream is done."""
        done = max(self.now, *self.ready.values())
        return {f"device.{name}": float(count) for name, count in self.counts.items()} | {
            "device.host_seconds": self.now,
            "device.seconds": done,
        }

    def held(self, names):
        """{name: array} of those names that are host arrays, after all operations. The host's program cannot
        write to them, so only the device has filled them."""
        self._settle(float("inf"))
        return {name: self.arrays[self.names[name]].copy() for name in names if name in self.names}

    def trace(self):
        """The first operations of the engines, for a drawing; {} where there were none."""
        more = self.counts["launches"] + self.counts["copies"] > len(self.spans)
        spans = [list(span) for span in self.spans]
        return {"kind": "engines", "spans": spans, "more": more} if spans else {}

    # calls that put an operation into a stream

    def _do_launch(self, message):
        name, stream = message.get("work"), self._stream(message)
        if not self.works:
            if name != "work":
                raise VirtualDeviceError(f"launch takes your argument `work`, got {str(name)[:40]!r}")
            return self._put(_Operation("launch", stream, name=name))
        work = self.works.get(name) if type(name) is str else None
        if work is None:
            raise VirtualDeviceError(f"there is no work {str(name)[:40]!r}; use {', '.join(self.works)}")
        spans = message.get("arrays")
        if type(spans) is not list or not 1 < len(spans) <= 8:
            raise VirtualDeviceError("launch takes the work, the array to fill, and 1 to 7 arrays to read")
        target, *sources = (self._span(span, "device") for span in spans)
        if any(source[2] - source[1] != target[2] - target[1] for source in sources):
            lengths = ", ".join(f"{stop - start:,}" for _, start, stop in (target, *sources))
            raise VirtualDeviceError(f"the arrays of a launch must have one length, got {lengths}")
        try:
            work.compute(*(np.zeros(1) for _ in sources))
        except (TypeError, ValueError):
            raise VirtualDeviceError(f"the work {name!r} does not read {len(sources)} arrays") from None
        timed = {"seconds": work.seconds_per_element * (target[2] - target[1]), "name": name}
        return self._put(_Operation("launch", stream, -1, target, tuple(sources), work.compute, **timed))

    def _do_copy(self, message):
        target, source = self._span(message.get("target")), self._span(message.get("source"))
        ways = {("device", "host"): "in", ("host", "device"): "out"}
        way = ways.get((self.places[target[0]], self.places[source[0]]))
        if way is None:
            raise VirtualDeviceError("a copy is from host to device or from device to host, not within one")
        if target[2] - target[1] != source[2] - source[1]:
            sizes = f"{source[2] - source[1]:,} elements to {target[2] - target[1]:,}"
            raise VirtualDeviceError(f"a copy of {sizes}: make both equally long")
        return self._put(_Operation(way, self._stream(message), -1, target, (source,)))

    def _do_record(self, message):
        self.events.append(None)
        event = len(self.events) - 1
        return self._put(_Operation("record", self._stream(message), event)) | {"event": event}

    def _do_wait(self, message):
        event = self._event(message.get("event"))
        return self._put(_Operation("wait", self._stream(message), event))

    def _do_replay(self, message):
        index, stream = message.get("graph"), self._stream(message)
        if type(index) is not int or not 0 <= index < len(self.graphs):
            raise VirtualDeviceError("replay takes a graph from end_capture()")
        self.now += self.timing.launch_overhead
        self.counts["replays"] += 1
        graph = self.graphs[index]
        used = {item.stream for item in graph}
        for other in used:
            self.ready[other] = max(self.ready[other], self.ready[stream])
        self.hazards.joined(used, stream)
        for item in graph:
            self._enqueue(replace(item))
        for other in used:
            self.hazards.joined([stream], other)
        self.ready[stream] = max(self.ready[stream], *(self.ready[other] for other in used), 0.0)
        return {}

    # other calls of the host

    def _do_stream(self, message):
        if len(self.ready) >= MAX_STREAMS:
            raise VirtualDeviceError(f"more than {MAX_STREAMS:,} streams: a stream can be used again")
        self.counts["others"] += 1
        self.ready[len(self.ready)] = self.now
        return {"stream": len(self.ready) - 1}

    def _do_host(self, message):
        name = message.get("name")
        if type(name) is not str or name not in self.names:
            known = ", ".join(self.names) or "none"
            raise VirtualDeviceError(f"there is no host array {str(name)[:40]!r}; this device has {known}")
        self.counts["others"] += 1
        return {"array": self.names[name], "size": self.arrays[self.names[name]].size}

    def _do_empty(self, message):
        size = message.get("size")
        if type(size) is not int or size < 1 or self.bytes + 8 * size > self.memory:
            raise VirtualDeviceError(
                f"device.empty takes a positive number of elements, got {str(size)[:40]}; this device holds "
                f"{self.memory // 8:,} in all, and {self.bytes // 8:,} are in use: use an array again"
            )
        self.counts["others"] += 1
        self.bytes += 8 * size
        self.arrays.append(np.full(size, np.nan))
        self.places.append("device")
        return {"array": len(self.arrays) - 1, "size": size}

    def _do_synchronize(self, message):
        if message.get("event") is not None:
            until = self._time_of(self._event(message["event"]))
        elif message.get("stream") is not None:
            until = self.ready[self._stream(message)]
        else:
            until = max(self.ready.values())
        self.hazards.synchronized(message.get("stream"), message.get("event"))
        self.now = max(self.now, until) + self.timing.sync_overhead
        self._update_host_view()
        self.counts["synchronizes"] += 1
        return {}

    def _do_read(self, message):
        index, start, stop = self._span(message.get("array"), "host")
        if index in self.unread:
            raise VirtualDeviceError(
                "this array is for the device alone: copy it there, launch the work, copy the result back"
            )
        self.counts["reads"] += 1
        return {"values": self.seen[index][start:stop].copy()}

    def _do_clock(self, message):
        self.now += self.timing.clock_overhead
        self.counts["clock_reads"] += 1
        return {"seconds": self.now}

    def _do_elapsed(self, message):
        what = "elapsed takes two events from record()"
        events = [self._event(message.get(end), what) for end in ("start", "end")]
        self.counts["others"] += 1
        start, end = map(self._time_of, events)
        if max(start, end) > self.now:
            raise VirtualDeviceError("the event has not happened yet: synchronize() before reading it")
        return {"seconds": end - start}

    def _do_capture(self, message):
        self.capturing = []
        self.counts["others"] += 1
        return {}

    def _do_end_capture(self, message):
        if self.capturing is None:
            raise VirtualDeviceError("end_capture() needs a capture() before it")
        self.graphs.append(self.capturing)
        self.capturing = None
        self.counts["others"] += 1
        return {"graph": len(self.graphs) - 1}

    # time

    def _put(self, item):
        """Charge the host for one call, and enqueue it or add it to the graph."""
        self.now += self.timing.launch_overhead
        if self.capturing is not None:
            self.capturing.append(item)
            self.counts["others"] += 1
        else:
            self._enqueue(item)
        return {}

    def _enqueue(self, item):
        stream, target = item.stream, item.target
        if item.kind == "record":
            self.ready[stream] = self.events[item.event] = max(self.now, self.ready[stream])
            self.counts["events"] += 1
            self.hazards.recorded(item.event, stream)
        elif item.kind == "wait":
            self.ready[stream] = max(self.ready[stream], self._time_of(item.event))
            self.counts["waits"] += 1
            self.hazards.waited(item.event, stream)
        elif self.elements > MAX_ELEMENTS:
            raise VirtualDeviceError(
                f"more than {MAX_ELEMENTS:,} elements were copied or computed: does a loop never end?"
            )
        else:
            if target:
                number = self.hazards.begins(stream, self._described(item), [target], item.sources)
                if item.kind == "out":
                    self.unsynced.append((target, stream, number))
            start, seconds = self._run(item, target[2] - target[1] if target else 0)
            if target:  # at the same time, writes of ended operations come before reads of starting ones
                self.sequence += 2
                heapq.heappush(self.pending, (start, self.sequence, item))
                heapq.heappush(self.pending, (start + seconds, self.sequence - 1, item))

    def _run(self, item, size):
        """Schedule and count a launch or copy of `size` elements on its engine; returns (start, seconds)."""
        engine = "compute" if item.kind == "launch" else item.kind
        start = max(self.now, self.ready[item.stream], self.engine[engine])
        self.elements += size
        if item.kind == "launch":
            own = self.timing.of_launch(self.counts["launches"])
            seconds = own if item.seconds is None else item.seconds
            self.counts["launches"] += 1
        else:
            nbytes = size * self.arrays[item.target[0]].itemsize
            seconds = self.timing.copy_latency + nbytes / self.timing.bandwidth
            self.counts["copies"] += 1
            self.counts["copied_bytes"] += nbytes
        self.ready[item.stream] = self.engine[engine] = start + seconds
        if len(self.spans) < MAX_SPANS:
            self.spans.append((engine, item.stream, start, seconds, item.name or item.kind))
        return start, seconds

    def _described(self, item):
        """An operation in words, for the message of a hazard: kind, number, arrays written and read."""
        what, count = ("launch", "launches") if item.kind == "launch" else ("copy", "copies")
        read = " and ".join(map(self._place, item.sources))
        return f"{what} {self.counts[count] + 1} ({self._place(item.target)} from {read})"

    def _place(self, span):
        """A span in words, "y[0:100]"; device arrays are numbered in the order of device.empty."""
        names = {index: name for name, index in self.names.items()}
        name = names.get(span[0], f"device array {span[0] - len(names) + 1} ")
        return f"{name}[{span[1]}:{span[2]}]"

    def _settle(self, until):
        """Do all reads and writes of operations that begin or end up to the time `until`, in order."""
        while self.pending and self.pending[0][0] <= until:
            _, _, operation = heapq.heappop(self.pending)
            if operation.values is None:
                found = [self.arrays[index][start:stop] for index, start, stop in operation.sources]
                with np.errstate(all="ignore"):
                    operation.values = np.array(operation.compute(*found))
            else:
                index, start, stop = operation.target
                self.arrays[index][start:stop] = operation.values

    def _update_host_view(self):
        """After a synchronisation: let the host read the copies that it has waited for."""
        self._settle(self.now)
        known = [self.hazards.is_known(stream, number) for _, stream, number in self.unsynced]
        for (index, start, stop), _, _ in itertools.compress(self.unsynced, known):
            self.seen[index][start:stop] = self.arrays[index][start:stop]
        self.unsynced = [copy for copy, over in zip(self.unsynced, known, strict=True) if not over]

    # validation of what a message refers to

    def _stream(self, message):
        stream = message.get("stream", 0)
        if type(stream) is not int or stream not in self.ready:
            raise VirtualDeviceError(f"there is no stream {str(stream)[:20]}; device.stream() makes one")
        return stream

    def _event(self, event, what="wait and synchronize take an event from record()"):
        if type(event) is not int or not 0 <= event < len(self.events):
            raise VirtualDeviceError(what)
        return event

    def _time_of(self, event):
        if self.events[event] is None:
            raise VirtualDeviceError("the event was captured in a graph that was not replayed: replay it")
        return self.events[event]

    def _span(self, value, place=None):
        """(array, start, stop) from [array, start, stop]."""
        if type(value) is not list or len(value) != 3 or any(type(number) is not int for number in value):
            raise VirtualDeviceError("an array from device.host() or device.empty() is needed here")
        index, start, stop = value
        if not 0 <= index < len(self.arrays) or not 0 <= start < stop <= self.arrays[index].size:
            raise VirtualDeviceError(f"elements {start:,} to {stop:,} are none, or lie outside the array")
        if place and self.places[index] != place:
            has = f"this one is on the {self.places[index]}: device.copy goes from one to the other"
            raise VirtualDeviceError(f"an array on the {place} is needed here, and {has}")
        return index, start, stop


def _is_plain(value, depth=2):
    """Whether a message may hold this value: null, a string, a 64-bit integer, or a list of these (spans).

    Handlers can then compare and print values without errors, which arrays or huge integers would raise.
    """
    if type(value) is list:
        return depth > 0 and all(_is_plain(inner, depth - 1) for inner in value)
    return value is None or type(value) is str or type(value) is int and -(2**63) <= value < 2**63
