"""The student's side of the virtual device: every method sends a message through `call(message) -> reply`."""


class VirtualDeviceError(RuntimeError):
    """The device refused a request; the message is a sentence for the student."""


class Array:
    """Elements start to stop of a host or device array; `array[a:b]` is a part of it. It holds no values.

    len(array), array.size and array.shape say how many there are, as they do of every device array.
    """

    def __init__(self, index, start, stop):
        self.index, self.start, self.stop = index, start, stop

    def __len__(self):
        return self.stop - self.start

    @property
    def size(self):
        return len(self)

    @property
    def shape(self):
        return (len(self),)

    def __repr__(self):
        return f"<array of {len(self):,} numbers, its values are read with device.read(array)>"

    def __getitem__(self, part):
        if type(part) is not slice or part.step not in (None, 1):
            raise VirtualDeviceError(
                "take a part of an array with array[start:stop]; device.read(array) gives its values"
            )
        start, stop, _ = part.indices(len(self))
        return Array(self.index, self.start + start, self.start + stop)


class DeviceClient:
    """The student's end: an asynchronous device.

    Nothing waits unless you say so: synchronize() lets the host wait, wait(event, stream) a stream, for an
    event of record(stream), while the host goes on. Streams are numbers; 0 is there already.
    """

    def __init__(self, call):
        self._call = call

    def stream(self):
        """A new stream: its operations run in order, and in no order with those of other streams."""
        return self._ask({"op": "stream"})["stream"]

    def host(self, name):
        """The page-locked host array of that name."""
        return self._array(self._ask({"op": "host", "name": name}))

    def empty(self, size):
        """A new array of `size` numbers on the device."""
        return self._array(self._ask({"op": "empty", "size": size}))

    def copy(self, target, source, stream=0):
        """Put a copy between host and device in a stream, and return at once."""
        self._ask({"op": "copy", "target": _span(target), "source": _span(source), "stream": stream})

    def launch(self, work, *arrays, stream=0):
        """Put `work` in a stream and return at once, long before it is done.

        arrays: the one to fill, then those to read.
        """
        name = work if type(work) is str else type(work).__name__
        message = {"op": "launch", "work": name, "stream": stream}
        self._ask(message | {"arrays": [_span(array) for array in arrays]} if arrays else message)

    def synchronize(self, stream=None, event=None):
        """Wait until the device is idle, or a stream is, or an event has happened."""
        self._ask({"op": "synchronize", "stream": stream, "event": event})

    def read(self, array):
        """What stands in a host array: copies that the host has not waited for are not in it."""
        return self._ask({"op": "read", "array": _span(array)})["values"]

    def clock(self):
        """The host's clock, in seconds."""
        return self._ask({"op": "clock"})["seconds"]

    def record(self, stream=0):
        """Put a time stamp in a stream and return its event; the device fills it in when it gets there."""
        return self._ask({"op": "record", "stream": stream})["event"]

    def wait(self, event, stream):
        """Let what follows in `stream` wait for an event; the host does not wait."""
        self._ask({"op": "wait", "event": event, "stream": stream})

    def elapsed(self, start, end):
        """Seconds of device time between two events that have both happened.

        Raises VirtualDeviceError if one has not.
        """
        plain = [event if type(event) is int else -1 for event in (start, end)]
        return self._ask({"op": "elapsed", "start": plain[0], "end": plain[1]})["seconds"]

    def capture(self):
        """From now on record launches, copies and events into a graph instead of running them."""
        self._ask({"op": "capture"})

    def end_capture(self):
        """The graph of what was recorded since capture()."""
        return self._ask({"op": "end_capture"})["graph"]

    def replay(self, graph, stream=0):
        """Run a whole graph, for the host the cost of one launch."""
        self._ask({"op": "replay", "graph": graph, "stream": stream})

    @staticmethod
    def _array(reply):
        return Array(reply["array"], 0, reply["size"])

    def _ask(self, message):
        reply = self._call(message)
        if "error" in reply:
            raise VirtualDeviceError(reply["error"])
        return reply


def _span(array):
    return [array.index, array.start, array.stop] if type(array) is Array else None
