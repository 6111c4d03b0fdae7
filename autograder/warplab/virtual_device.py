"""A device that runs behind the host's back, on a virtual clock: what a GPU looks like to the program that times it.

The judge owns a VirtualDevice. A student's code holds a Device, whose every method is one message through
`call(message) -> reply`, both JSON objects; so the two may live in different processes. No real time passes and nothing
is computed: launches only keep the device's queue busy for a while, which is all that a timer has to get right.
"""

from dataclasses import dataclass

MAX_CALLS = 100_000


class DeviceError(RuntimeError):
    """The device refused a request; the message is a sentence for the student."""


@dataclass(frozen=True)
class Timing:
    """How the device behaves. All times in seconds.

    duration: one launch of the work at full speed.  noise: relative spread of it (a fixed zigzag, not random).
    cold_launches, cold_factor: the first launches run slower, as compilation, caches and clocks do on a real device.
    pending: work of somebody else that is in the queue already.
    outlier_every, outlier_factor: each n-th launch is interrupted and takes longer (0: never).
    launch_overhead, sync_overhead, clock_overhead: what each call costs the host.
    """

    duration: float
    noise: float = 0.01
    cold_launches: int = 0
    cold_factor: float = 1.0
    pending: float = 0.0
    outlier_every: int = 0
    outlier_factor: float = 1.0
    launch_overhead: float = 5e-6
    sync_overhead: float = 3e-6
    clock_overhead: float = 1e-7

    def of_launch(self, index):
        """Seconds that launch number `index` (from 0) keeps the device busy."""
        seconds = self.duration * (1 + self.noise * ((index * 5) % 7 - 3) / 3)
        if index < self.cold_launches:
            seconds *= self.cold_factor
        if self.outlier_every and index % self.outlier_every == self.outlier_every - 1:
            seconds *= self.outlier_factor
        return seconds


class VirtualDevice:
    """The judge's end: one in-order queue, a host clock, events. `call` is the only door."""

    def __init__(self, timing):
        self.timing = timing
        self.now = 0.0
        self.free_at = timing.pending
        self.events = []
        self.counts = {"launches": 0, "synchronizes": 0, "clock_reads": 0, "events": 0}

    def connect(self):
        """A client in this process."""
        return Device(self.call)

    def call(self, message):
        """Serve one message, such as {"op": "launch", "work": "work"}. Always replies, if need be {"error": text}."""
        if type(message) is not dict or type(message.get("op")) is not str:
            return {"error": "a message is a JSON object with an `op`"}
        handler = getattr(self, f"_do_{message['op']}", None)
        if handler is None:
            return {"error": f"the device does not know the operation {message['op'][:40]!r}"}
        if sum(self.counts.values()) >= MAX_CALLS:
            return {"error": f"more than {MAX_CALLS:,} calls: does a loop never end?"}
        return handler(message)

    def counters(self):
        """How often each kind of call was made, plus the host's clock: plain floats."""
        return {f"device.{name}": float(count) for name, count in self.counts.items()} | {"device.host_seconds": self.now}

    def _do_launch(self, message):
        if message.get("work") != "work":
            return {"error": f"launch takes the `work` that you were given, got {str(message.get('work'))[:40]!r}"}
        self.now += self.timing.launch_overhead
        self.free_at = max(self.now, self.free_at) + self.timing.of_launch(self.counts["launches"])
        self.counts["launches"] += 1
        return {}

    def _do_synchronize(self, message):
        self.now = max(self.now, self.free_at) + self.timing.sync_overhead
        self.counts["synchronizes"] += 1
        return {}

    def _do_clock(self, message):
        self.now += self.timing.clock_overhead
        self.counts["clock_reads"] += 1
        return {"seconds": self.now}

    def _do_record(self, message):
        self.now += self.timing.launch_overhead
        self.free_at = max(self.now, self.free_at)
        self.events.append(self.free_at)
        self.counts["events"] += 1
        return {"event": len(self.events) - 1}

    def _do_elapsed(self, message):
        times = []
        for end in ("start", "end"):
            index = message.get(end)
            if type(index) is not int or not 0 <= index < len(self.events):
                return {"error": "elapsed takes two events from record()"}
            if self.events[index] > self.now:
                return {"error": "the event has not happened yet: synchronize() before reading it"}
            times.append(self.events[index])
        return {"seconds": times[1] - times[0]}


class Device:
    """The student's end: an asynchronous device. Nothing waits unless you say so."""

    def __init__(self, call):
        self._call = call

    def launch(self, work):
        """Put `work` in the device's queue and return at once, long before it is done."""
        self._ask({"op": "launch", "work": work if type(work) is str else type(work).__name__})

    def synchronize(self):
        """Wait until the device's queue is empty."""
        self._ask({"op": "synchronize"})

    def clock(self):
        """The host's clock, in seconds."""
        return self._ask({"op": "clock"})["seconds"]

    def record(self):
        """Put a time stamp in the queue and return its event; the device fills it in when it gets there."""
        return self._ask({"op": "record"})["event"]

    def elapsed(self, start, end):
        """Seconds of device time between two events that have both happened. Raises DeviceError if one has not."""
        plain = [event if type(event) is int else -1 for event in (start, end)]
        return self._ask({"op": "elapsed", "start": plain[0], "end": plain[1]})["seconds"]

    def _ask(self, message):
        reply = self._call(message)
        if "error" in reply:
            raise DeviceError(reply["error"])
        return reply
