"""The messages between the grader and sandboxed processes: on a socket, one JSON line and its arrays.

No pickle and no object arrays; types, names and sizes are checked here and nowhere else. The line holds the
message and the length of each array; the arrays follow in the .npy format. In the JSON an array is
{"__array__": index}. The maximum size of a message depends on its type (ROOM) and is checked before it is
read: that of a line while it arrives, that of arrays before memory is allocated for them. Python's own parser
reads the JSON; msgspec validates it against the annotated fields of the message's class.
"""

import functools
import io
import json
import math
import os
import re
import select
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

MAX_ARRAYS = 4096
MAX_DEPTH = 32  # of nested lists and objects
PIECE = 1 << 16  # bytes read at once; a message up to this size is sent in one piece
MAX_TEXT = 2000  # characters of an error
ARRAY = "__array__"
Error = Annotated[str, Meta(max_length=MAX_TEXT)]
MAGIC = b"\x93NUMPY\x01\x00"
NPY = re.compile(
    rb"\{'descr': '([^']{1,16})', 'fortran_order': (False|True), "
    rb"'shape': \((|\d{1,12},|\d{1,12}(?:, \d{1,12}){1,31})\), \} *\n"
)
TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)  # JSON strings; one may be cut off


class BadMessage(ValueError):
    """A message that is too large, malformed, of the wrong type, or not plain data."""


class TooMuch(BadMessage):
    """More arrived than an Allowance permits."""


class Closed(Exception):
    """The other end is gone."""


class Message(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """The base of all messages. The name of the class is the field "type" of the JSON."""


class Ready(Message):
    """A process is up."""


class Cell(Message):
    """Execute a notebook cell. To the student's process, which answers with Executed."""

    id: str
    source: str


class Executed(Message):
    """A cell was executed. error: what it raised, in one sentence, or None."""

    error: Error | None


class Question(Message):
    """Answer one case of a task. Answered with Answer, Failure or Missing.

    crossing, entry, plan_entry, data: as in warplab.crossing. most_s: seconds of computing it may take.
    """

    crossing: str
    entry: str
    plan_entry: str | None
    data: dict
    most_s: float


class Answer(Message):
    """The plain data that warplab.crossing's answer() gave."""

    data: dict


class Failure(Message):
    """The student's code could not answer; one sentence for the student."""

    error: Error


class Missing(Message):
    """No cell has defined this name."""

    name: str


class Read(Message):
    """A submitted file, its bytes as uint8. To the reader, which answers with Contents or Unreadable."""

    data: np.ndarray


class Contents(Message):
    """The cells of a file: a list of autograder.reader.contents.HandedInCell."""

    cells: list


class Unreadable(Message):
    """The file is not a notebook. code: a fixed word. text: a sentence for the student."""

    code: str
    text: str


class Examine(Message):
    """Analyse code cells, each (id, source, whether it is given and unchanged).

    To the reader, which answers with Examined.
    """

    cells: list[tuple[str, str, bool]]


class Examined(Message):
    """idle: ids of given cells whose names no cell uses. cuda_cpp: CUDA C++ sources, the last one first."""

    idle: list[str]
    cuda_cpp: list[str]


class Call(Message):
    """While a Question is open: a request to the judge's device or router. Answered with Reply."""

    data: dict


class Reply(Message):
    """The answer to a Call."""

    data: dict


class RunOrder(Message):
    """An Order for the executor, in its plain form. Answered with Done."""

    order: dict


class Done(Message):
    """The result of a RunOrder: the fields of a warplab.crossing.Outcome, except for the case."""

    outputs: dict[str, np.ndarray]
    counters: dict[str, float]
    modified: tuple[str, ...]
    error: Error | None = None
    access: dict = {}
    findings: tuple = ()


class Broken(Message):
    """The executor failed. error: the exception, in one sentence."""

    error: Error


class Prepare(Message):
    """Get ready to time the steps of these Orders, one for each input set. Answered with Prepared."""

    orders: list[dict]


class Yardstick(Message):
    """Get ready to time a function of PyTorch, ["torch.matmul", "a", "b"], on these inputs.

    Answered with Prepared.
    """

    call: list[str]
    inputs: list[dict]


class Prepared(Message):
    """The executor is warmed up. bandwidth: the device's measured memory bandwidth in bytes a second."""

    bandwidth: float


class Sample(Message):
    """Time input set `number` once. Answered with Sampled."""

    number: int


class Sampled(Message):
    """One sample: its seconds, the SM clock in MHz, and the outputs of the launch."""

    seconds: float
    clock: float
    outputs: dict[str, np.ndarray]


Kind = TypeVar("Kind", bound=Message)


@dataclass(frozen=True)
class Room:
    """The maximum size of a message: bytes of its line, values in it, bytes of its arrays.

    Every list, object, number and string is a value, and takes up to a hundred bytes once parsed.
    """

    text: int = 64 << 10
    values: int = 2_000
    arrays: int = 0


SMALL = Room()
FROM_THE_JUDGE = Room(16 << 20, 1_000_000, 1 << 30)  # its messages are trusted
ROOM = {
    **dict.fromkeys(Message.__subclasses__(), SMALL),
    # from the student's process: a kernel's PTX (crossing.orders.MAX_PTX_BYTES) or a driver's recording, and
    # results (crossing.MAX_RESULT_BYTES)
    Answer: Room(6 << 20, 250_000, (4 << 20) + PIECE),
    Call: Room(SMALL.text, SMALL.values, (1 << 20) + PIECE),
    # from the executor: the arrays that the judge asked for; those of timed rows are the largest
    Done: Room(SMALL.text, SMALL.values, 16 << 20),
    Sampled: Room(SMALL.text, SMALL.values, (64 << 20) + PIECE),
    # from the reader: reader.contents.MAX_TEXT characters, each up to twelve bytes in JSON
    Contents: Room(13 << 20, 32_000),
    Examined: Room(3 << 20, 4_000),
    **dict.fromkeys((Cell, Question, Reply, RunOrder, Prepare, Yardstick, Read, Examine), FROM_THE_JUDGE),
}


class Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON line of a message. body: its fields. arrays: the length in bytes of each array."""

    body: dict[str, Any]
    arrays: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(max_length=MAX_ARRAYS)]


class Allowance:
    """How many bytes and messages may still arrive, over one channel or several."""

    def __init__(self, nbytes: float = math.inf, messages: float = math.inf) -> None:
        self.bytes, self.messages = nbytes, messages

    def spend(self, nbytes: int = 0, messages: int = 0) -> None:
        """Count what has arrived. Raises TooMuch when the allowance is used up."""
        self.bytes -= nbytes
        self.messages -= messages
        if self.bytes < 0 or self.messages < 0:
            raise TooMuch("more data came" if self.bytes < 0 else "more messages came")


class Channel:
    """One end of a connected socket. `allowances`: everything that arrives is counted in each of them."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._arrived = select.poll()
        self._arrived.register(connection, select.POLLIN)
        self.allowances: tuple[Allowance, ...] = ()
        self._buffer = bytearray()  # of a line, and the bytes read behind its end
        self._coming: tuple[dict[str, Any], list[np.ndarray]] | None = None  # a body, buffers for its arrays
        self._full, self._filled = 0, 0  # complete arrays, and bytes of the next one

    def send(self, message: Message, unread: Callable[[], None] | None = None) -> None:
        """Send one message. Raises Closed if the other end is gone.

        unread: called while the other end has not read all of it, at least at each timeout of the socket; it
        may raise to give up.
        """
        try:
            parts = encode(message)
            for part in parts if sum(map(len, parts)) > PIECE else [b"".join(parts)]:
                sent = 0
                while sent < len(part):
                    try:
                        sent += self.socket.send(memoryview(part)[sent:])
                    except TimeoutError:
                        if unread is None:
                            raise
                    if unread and sent < len(part):
                        unread()
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def receive(self, allowed: tuple[type[Kind], ...]) -> Kind:
        """Wait for the next message, which must be of a type in `allowed`."""
        while (message := self.take(allowed)) is None:
            self.fill()
        return message

    def fill(self) -> None:
        """Read what has arrived, waiting up to the socket's timeout. Raises Closed at the channel's end."""
        try:
            if self._coming is None:
                data = self.socket.recv(PIECE)
                self._buffer += data
                count = len(data)
            else:
                count = self.socket.recv_into(self._coming[1][self._full].data[self._filled :])
                self._filled += count
        except ConnectionResetError:
            count = 0
        if not count:
            raise Closed
        for allowance in self.allowances:
            allowance.spend(nbytes=count)

    def more(self) -> bool:
        """Whether data has arrived that was not taken yet; the end of the channel does not count."""
        if self._buffer or self._coming:
            return True
        try:
            return bool(self._arrived.poll(0) and self.socket.recv(1, socket.MSG_PEEK))
        except ConnectionResetError:
            return False

    def take(self, allowed: tuple[type[Kind], ...]) -> Kind | None:
        """The next message if all of it has arrived, else None. Raises BadMessage for another type."""
        if self._coming is None:
            self._coming = self._take_line(allowed)
        if self._coming is None or not self._all_there(self._coming[1]):
            return None
        body, arrays = self._coming
        self._coming = None
        for allowance in self.allowances:
            allowance.spend(messages=1)
        return typed(_unpack(body, [decode_array(array) for array in arrays]), allowed)

    def _all_there(self, arrays: Sequence[np.ndarray]) -> bool:
        """Whether all arrays have arrived; first moves bytes that were read with the line into them."""
        while self._full < len(arrays):
            array = arrays[self._full]
            count = min(len(self._buffer), len(array) - self._filled)
            array[self._filled : self._filled + count] = memoryview(self._buffer)[:count]
            del self._buffer[:count]
            self._filled += count
            if self._filled < len(array):
                return False
            self._full, self._filled = self._full + 1, 0
        self._full = 0
        return True

    def _take_line(self, allowed: tuple[type[Kind], ...]) -> tuple[dict[str, Any], list[np.ndarray]] | None:
        """(body of the next line, buffers for its arrays); None if the line has not arrived completely."""
        if not self._buffer:
            return None
        rooms = [ROOM[kind] for kind in allowed]
        longest, most = max(room.text for room in rooms), max(room.values for room in rooms)
        end = self._buffer.find(b"\n", 0, longest)
        if end < 0:
            if len(self._buffer) >= longest:
                raise BadMessage(f"a line longer than {longest >> 10:,} KiB")
            return None
        line = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + 1]
        if not _fits(line, most):
            raise BadMessage(f"a message of more than {most:,} values")
        try:
            told = msgspec.convert(json.loads(line.decode("utf-8")), Envelope)
        except (ValueError, RecursionError) as problem:  # from UTF-8, JSON or msgspec
            raise BadMessage(f"not a message: {str(problem)[:80]}") from None
        room = ROOM[kind := _kind_of(told.body, allowed)]
        if len(line) >= room.text or not _fits(line, room.values):
            raise BadMessage(f"{kind.__name__} with {len(line):,} bytes of text, or too many values")
        if sum(told.arrays) > room.arrays:
            raise BadMessage(f"{kind.__name__} with {sum(told.arrays):,} bytes of arrays")
        return told.body, [np.empty(size, np.uint8) for size in told.arrays]


def serve(fd: int, allowed: tuple[type[Message], ...], handle: Callable[[Channel, Any], None]) -> None:
    """The main loop of a role: handle one message after another, until the other end is closed."""
    channel = Channel(socket.socket(fileno=fd))
    try:
        channel.send(Ready())
        while True:
            handle(channel, channel.receive(allowed))
    except Closed:
        os._exit(0)  # without waiting for threads or running atexit hooks of a student's


def _fits(line: bytes, most: int) -> bool:
    """Whether a line of JSON holds at most `most` values (lists, objects, numbers, strings).

    Each value but the first follows a bracket, comma or colon outside of strings.
    """
    if len(line) <= most:
        return True
    bare = TEXTS.sub(b"", line)
    return 1 + sum(map(bare.count, (b"[", b"{", b",", b":"))) <= most


def _kind_of(body: dict[str, Any], allowed: tuple[type[Kind], ...]) -> type[Kind]:
    """The type in `allowed` that a message's body names. Raises BadMessage for any other."""
    for kind in allowed:
        if kind.__name__ == body.get("type"):
            return kind
    name = body.get("type")
    wanted = " or ".join(sorted(kind.__name__ for kind in allowed))
    raise BadMessage(f"expected {wanted}, got {name[:40] if isinstance(name, str) else type(name)!r}")


def typed(body: dict[str, Any], allowed: tuple[type[Kind], ...]) -> Kind:
    """The message that `body` describes. Raises BadMessage for a wrong type name or field."""
    kind = _kind_of(body, allowed)
    try:
        return msgspec.convert(body, kind)
    except (msgspec.ValidationError, AttributeError) as problem:  # AttributeError: an array instead of a dict
        raise BadMessage(f"{kind.__name__}: {problem}") from None


def encode(message: Message) -> list[bytes | memoryview]:
    """The parts to send for one message: its line, then its arrays, whose memory is not copied.

    Raises BadMessage for values that are not plain data, and for a message larger than its type's ROOM.
    """
    arrays: list[list[bytes | memoryview]] = []
    body = {"type": type(message).__name__} | msgspec.structs.asdict(message)
    if isinstance(body.get("error"), str):
        body["error"] = body["error"][:MAX_TEXT]
    text = _as_json(body, arrays)
    sizes = [sum(map(len, parts)) for parts in arrays]
    line = f'{{"body": {text}, "arrays": {sizes}}}\n'.encode()
    room = ROOM[type(message)]
    too_large = len(line) > room.text or len(arrays) > MAX_ARRAYS or sum(sizes) > room.arrays
    if too_large or not _fits(line, room.values):
        size = f"{len(line):,} bytes of text, {len(arrays):,} arrays of {sum(sizes):,} bytes"
        most = f"{room.text >> 10:,} KiB of text and {room.arrays >> 20:,} MiB of arrays"
        raise BadMessage(f"the message is too large: {size}; the most is {most}")
    return [line, *(part for parts in arrays for part in parts)]


def decode_array(data: np.ndarray) -> np.ndarray:
    """The array in .npy bytes, sharing their memory.

    data: uint8. Raises BadMessage unless it is exactly one array of bool, integer or floating-point numbers.
    """
    start = len(MAGIC) + 2
    head = data[:start].tobytes()
    if not head.startswith(MAGIC) or len(head) < start:
        raise BadMessage("not an array in version 1.0 of .npy")
    begin, start = start, start + int.from_bytes(head[-2:], "little")
    found = NPY.fullmatch(data[begin:start].tobytes())
    if not found:
        raise BadMessage("not an array: its header gives no valid dtype and shape")
    try:
        dtype = np.dtype(found[1].decode("ascii"))
    except (TypeError, ValueError, SyntaxError):
        raise BadMessage("not an array: its header gives no dtype") from None
    if dtype.kind not in "biuf" or found[2] == b"True":
        raise BadMessage(f"an array of dtype {dtype} cannot be sent: use bool, int or float, in C order")
    shape = tuple(int(size) for size in found[3].split(b",") if size)
    # checked for empty arrays as well: NumPy cannot make one of shape (2 ** 39, 2 ** 39, 0)
    if math.prod(size or 1 for size in shape) * dtype.itemsize > FROM_THE_JUDGE.arrays:
        raise BadMessage(f"an array whose shape stands for more than {FROM_THE_JUDGE.arrays >> 20:,} MiB")
    if math.prod(shape) * dtype.itemsize != len(data) - start or start % dtype.itemsize:
        raise BadMessage("an array whose shape and length disagree")
    return data[start:].view(dtype).reshape(shape)


def _encode_array(array: np.ndarray) -> list[bytes | memoryview]:
    """[the .npy header, a view of the array's memory] in C order. Raises BadMessage for other dtypes."""
    if array.dtype.kind not in "biuf":
        raise BadMessage(f"an array of dtype {array.dtype} cannot be sent: use bool, int or float")
    array = np.asarray(array, order="C")
    return [_header(array.dtype.str, array.shape), array.reshape(-1).view(np.uint8).data]


@functools.lru_cache(256)
def _header(descr: str, shape: tuple[int, ...]) -> bytes:
    """The .npy header of an array in C order. descr: its dtype's .str."""
    stream = io.BytesIO()
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, about)
    return stream.getvalue()


def _as_json(body: dict[str, Any], arrays: list[list[bytes | memoryview]]) -> str:
    """The JSON of plain data; arrays in it are encoded and appended to `arrays`."""

    def plain(value: object) -> object:
        if type(value) is np.ndarray:
            arrays.append(_encode_array(value))
            return {ARRAY: len(arrays) - 1}
        if isinstance(value, np.generic):
            return value.item()
        raise BadMessage(f"a {type(value).__name__} cannot be sent")

    try:
        return json.dumps(body, default=plain)
    except (TypeError, ValueError, RecursionError) as problem:  # a key of the wrong type; a cycle
        raise BadMessage(f"the message cannot be sent: {problem}") from None


def _unpack(value: Any, arrays: Sequence[np.ndarray], depth: int = MAX_DEPTH) -> Any:
    """Received JSON with its arrays put in. Raises BadMessage if it is nested deeper than MAX_DEPTH."""
    if depth < 0:
        raise BadMessage(f"a message whose lists and objects are nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        if value.keys() == {ARRAY}:
            index = value[ARRAY]
            if type(index) is not int or not 0 <= index < len(arrays):
                raise BadMessage("a message names an array that was not sent with it")
            return arrays[index]
        return {_whole(key): _unpack(inner, arrays, depth - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unpack(inner, arrays, depth - 1) for inner in value]
    return _whole(value) if isinstance(value, str) else value


def _whole(text: str) -> str:
    """The text with lone surrogates replaced by "?".

    JSON can spell them ("\\ud800"), but they cannot be encoded into a file.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
