"""What grader, sandbox and executor say to each other on a socket: one JSON line and its arrays.

Never pickle, never object arrays; types, names and sizes are checked here and nowhere else. A line holds the
message and the length of each array, which follows it in the .npy format; in the JSON an array is
{"__array__": index}.
"""

import io
import json
import math
import select
import socket
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

MAX_LINE = 16 << 20
MAX_NODES = (
    1_000_000  # lists and objects of one line, each of which takes twenty times the room once it is read
)
MAX_ARRAYS = 4096
MAX_BYTES = 1 << 30  # of one message's arrays
PIECE = 1 << 16  # bytes that are worth sending at once
MAX_TEXT = 2000  # characters of an error
ARRAY, FLOAT = "__array__", "__float__"


class BadMessage(ValueError):
    """A message that is too large, malformed, of the wrong type, or not plain data."""


class Closed(Exception):
    """The other end is gone."""


@dataclass(frozen=True)
class Ready:
    """A process is up."""


@dataclass(frozen=True)
class Cell:
    """Execute a notebook cell. To the student's process, which answers with Executed."""

    id: str
    source: str


@dataclass(frozen=True)
class Executed:
    """error: what the cell raised, in one sentence, or None."""

    error: str | None


@dataclass(frozen=True)
class Question:
    """Answer one case of a task; crossing, names and data as in warplab.crossing.

    Answered with Answer, Failure or Missing.
    """

    crossing: str
    entry: str
    plan_entry: str | None
    data: dict


@dataclass(frozen=True)
class Answer:
    """The plain data that warplab.crossing's answer() gave."""

    data: dict


@dataclass(frozen=True)
class Failure:
    """The student's code could not answer; one sentence for the student."""

    error: str


@dataclass(frozen=True)
class Missing:
    """No cell has defined this name."""

    name: str


@dataclass(frozen=True)
class Call:
    """While a Question is open: a request to the judge's device or router. Answered with Reply."""

    data: dict


@dataclass(frozen=True)
class Reply:
    """The answer to a Call."""

    data: dict


@dataclass(frozen=True)
class RunOrder:
    """An Order for the executor, in its plain form. Answered with Done."""

    order: dict


@dataclass(frozen=True)
class Done:
    """A warplab.crossing.Outcome that has no case yet."""

    outputs: dict
    counters: dict
    modified: list
    error: str | None = None
    access: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Prepare:
    """Get ready to time the steps of these Orders, one for each input set. Answered with Prepared."""

    orders: list


@dataclass(frozen=True)
class Yardstick:
    """Get ready to time a function of PyTorch, ["torch.matmul", "a", "b"], on these inputs.

    Answered with Prepared.
    """

    call: list
    inputs: list


@dataclass(frozen=True)
class Prepared:
    """Warm. bandwidth: the device's measured memory bandwidth in bytes a second."""

    bandwidth: float


@dataclass(frozen=True)
class Sample:
    """Time input set `number` once. Answered with Sampled."""

    number: int


@dataclass(frozen=True)
class Sampled:
    """One sample in seconds, the SM clock in MHz, and the outputs that the launch left."""

    seconds: float
    clock: float
    outputs: dict


Message = (
    Ready
    | Cell
    | Executed
    | Question
    | Answer
    | Failure
    | Missing
    | Call
    | Reply
    | RunOrder
    | Done
    | Prepare
    | Yardstick
    | Prepared
    | Sample
    | Sampled
)
Kind = TypeVar("Kind", bound=Message)
HINTS = {kind: typing.get_type_hints(kind) for kind in typing.get_args(Message)}


def _refuse_constant(name: str) -> None:
    raise BadMessage(f"{name} is not JSON")


TO_JSON, FROM_JSON = json.JSONEncoder(allow_nan=False), json.JSONDecoder(parse_constant=_refuse_constant)


class Channel:
    """One end of a connected socket.

    `budget` bytes and `messages` may still arrive before it is a BadMessage.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.budget, self.messages = math.inf, math.inf
        self._buffer = bytearray()
        self._head: tuple[object, list[int]] | None = None  # a line's body, and the lengths of its arrays

    def allow(self, budget: float, messages: float) -> None:
        """Set what may arrive from now on."""
        self.budget, self.messages = budget, messages

    def send(self, message: Message) -> None:
        """Send one message.

        Raises Closed if nobody is there, TimeoutError if the socket has a timeout and nobody reads.
        """
        try:
            parts = encode(message)
            for part in parts if sum(map(len, parts)) > PIECE else [b"".join(parts)]:
                self.socket.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def receive(self, allowed: tuple[type[Kind], ...]) -> Kind:
        """The next message, of one of the types in `allowed`; waits for it."""
        while (message := self.take(allowed)) is None:
            self.fill()
        return message

    def fill(self) -> None:
        """Read what is there, waiting as long as the socket's timeout. Raises Closed at the end."""
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed
        self.budget -= len(data)
        if self.budget < 0:
            raise BadMessage("more data came than a step may send")
        self._buffer += data

    def more(self) -> bool:
        """Whether something has arrived that was not taken yet; the end of the channel is nothing."""
        if self._buffer:
            return True
        try:
            return bool(select.select([self.socket], [], [], 0)[0] and self.socket.recv(1, socket.MSG_PEEK))
        except ConnectionResetError:
            return False

    def take(self, allowed: tuple[type[Kind], ...]) -> Kind | None:
        """A whole message that has arrived, or None.

        Raises BadMessage for one that is not of an allowed type.
        """
        if self._head is None:
            self._head = self._take_line()
        if self._head is None:
            return None
        body, sizes = self._head
        if len(self._buffer) < sum(sizes):
            return None
        self._head = None
        arrays: list[np.ndarray] = []
        start = 0
        for size in sizes:
            arrays.append(decode_array(bytes(self._buffer[start : start + size])))
            start += size
        del self._buffer[:start]
        self.messages -= 1
        if self.messages < 0:
            raise BadMessage("more messages came than a step may send")
        try:
            return typed(_unpack(body, arrays), allowed)
        except RecursionError:
            raise BadMessage("a message that is nested too deep") from None

    def _take_line(self) -> tuple[object, list[int]] | None:
        """The body of the next line and the lengths of its arrays, None if it has not all arrived."""
        end = self._buffer.find(b"\n", 0, MAX_LINE)
        if end < 0:
            if len(self._buffer) >= MAX_LINE:
                raise BadMessage(f"a message longer than {MAX_LINE >> 20} MiB")
            return None
        line = self._buffer[:end]
        if line.count(b"[") + line.count(b"{") > MAX_NODES:
            raise BadMessage(f"a message of more than {MAX_NODES:,} lists and objects")
        try:
            document = FROM_JSON.decode(line.decode("utf-8"))
        except (UnicodeDecodeError, ValueError, RecursionError) as problem:
            raise BadMessage(f"not a message: {type(problem).__name__}") from None
        del self._buffer[: end + 1]
        whole = type(document) is dict and set(document) == {"body", "arrays"}
        if not whole or type(document["arrays"]) is not list:
            raise BadMessage("not a message: it has no body and arrays")
        sizes = document["arrays"]
        if not _are_sizes(sizes):
            raise BadMessage(f"a message with more than {MAX_ARRAYS} arrays or {MAX_BYTES >> 20} MiB")
        return document["body"], sizes


def _are_sizes(sizes: list[Any]) -> bool:
    """Whether a list from JSON holds the lengths of arrays that one message may bring."""
    if len(sizes) > MAX_ARRAYS or any(type(size) is not int or size < 0 for size in sizes):
        return False
    return sum(sizes) <= MAX_BYTES


def typed(body: object, allowed: tuple[type[Kind], ...]) -> Kind:
    """The dataclass that `body` describes.

    Raises BadMessage unless its name and the type of every field are right.
    """
    fields: dict[str, Any] = body if isinstance(body, dict) else {}
    name = fields.pop("type", None)
    kind = next((kind for kind in allowed if kind.__name__ == name), None)
    if kind is None:
        wanted = " or ".join(sorted(kind.__name__ for kind in allowed))
        raise BadMessage(f"expected {wanted}, got {str(name)[:40]!r}")
    hints = HINTS[kind]
    if set(fields) != set(hints):
        raise BadMessage(
            f"{name} has the fields {', '.join(hints) or 'none'}, got {', '.join(map(str, fields))[:80]}"
        )
    for key, hint in hints.items():
        types_of_field = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        if type(fields[key]) not in types_of_field:
            raise BadMessage(f"{name}.{key} is a {type(fields[key]).__name__}")
    if isinstance(fields.get("error"), str):
        fields["error"] = fields["error"][:MAX_TEXT]
    return kind(**fields)


def encode(message: Message) -> list[bytes]:
    """The line and the arrays of one message, as bytes. Raises BadMessage for what is not plain data."""
    arrays: list[bytes] = []
    body = _pack({"type": type(message).__name__} | vars(message), arrays)
    line = TO_JSON.encode({"body": body, "arrays": [len(array) for array in arrays]}).encode()
    nbytes = sum(map(len, arrays))
    if len(line) >= MAX_LINE or len(arrays) > MAX_ARRAYS or nbytes > MAX_BYTES:
        size = f"{len(line):,} bytes of text, {len(arrays):,} arrays of {nbytes:,} bytes"
        raise BadMessage(f"the message is too large: {size}")
    return [line + b"\n", *arrays]


def decode_array(data: bytes) -> np.ndarray:
    """A new array from .npy bytes. Raises BadMessage unless they are exactly one array of numbers."""
    stream = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise BadMessage("an array in another version of .npy than 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except BadMessage:
        raise
    except Exception as problem:  # noqa: BLE001 - the header is a Python literal of a stranger's
        raise BadMessage(f"not an array: {type(problem).__name__}") from None
    start = stream.tell()
    if dtype.kind not in "biuf" or fortran or len(shape) > 32:
        raise BadMessage(f"an array of {dtype} that cannot cross")
    whole = all(type(size) is int and size >= 0 for size in shape)
    # of an empty one, too: NumPy makes none of (2 ** 70, 0)
    if not whole or math.prod(size or 1 for size in shape) * dtype.itemsize > MAX_BYTES:
        raise BadMessage("an array of a shape that cannot be")
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise BadMessage("an array whose shape and length disagree")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).copy()


def _encode_array(array: np.ndarray) -> bytes:
    if array.dtype.kind not in "biuf":
        raise BadMessage(f"arrays of {array.dtype} do not cross")
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array(array, order="C"), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _pack(value: Any, arrays: list[bytes]) -> Any:
    """`value` as JSON holds it; its arrays, as .npy, are added to `arrays`."""
    if type(value) is np.ndarray:
        arrays.append(_encode_array(value))
        return {ARRAY: len(arrays) - 1}
    if isinstance(value, dict):
        return {str(key): _pack(inner, arrays) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(inner, arrays) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {FLOAT: repr(float(value))}
    if isinstance(value, np.generic):
        return _pack(value.item(), arrays)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise BadMessage(f"a {type(value).__name__} does not cross")


def _unpack(value: Any, arrays: Sequence[np.ndarray]) -> Any:
    """The inverse of _pack, for JSON that a stranger wrote."""
    if isinstance(value, dict):
        if set(value) == {ARRAY}:
            index = value[ARRAY]
            if type(index) is not int or not 0 <= index < len(arrays):
                raise BadMessage("a message names an array that it does not bring")
            return arrays[index]
        if set(value) == {FLOAT} and value[FLOAT] in ("nan", "inf", "-inf"):
            return float(value[FLOAT])
        return {_whole(key): _unpack(inner, arrays) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unpack(inner, arrays) for inner in value]
    return _whole(value) if isinstance(value, str) else value


def _whole(text: str) -> str:
    """The text with a question mark in place of half a character.

    JSON can spell such a half ("\\ud800"), and no file can hold it.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
