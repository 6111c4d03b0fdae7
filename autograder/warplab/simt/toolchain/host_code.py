"""Removes the host code of a `.cu` file: NVRTC compiles only device code, and refuses ``main``.

Declarations with an execution or memory space (``__global__``, ``__device__``, ``__constant__``, ...) are
kept, and so are all types, aliases, constants and constexpr functions that these mention, directly or
indirectly. The rest is replaced by blanks, so that line numbers stay. The author's own headers are treated in
the same way.

The lexical grammar of C++ is one regular expression here. tree-sitter's CUDA grammar would be two more binary
wheels for every student, and it fails where a macro such as ``CHECK(...)`` is a statement.
"""

from __future__ import annotations

import bisect
import functools
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<directive>(?<![^\n])[ \t]*\#(?:\\\r?\n|//(?:\\\r?\n|[^\n])*|/\*.*?\*/|[^\n])*)
    |(?P<blank>[^\S\n]+|\n|//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
    |(?P<string>(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<mark>::|->|[-+*/%&|^<>=!]=|.)
    """,
    re.S | re.X,
)
_DIRECTIVE = re.compile(r"\s*#\s*(?P<verb>\w*)\s*(?P<rest>.*)", re.S)
_DEFINE = re.compile(r"(?P<name>\w+)(?P<call>\()?(?P<body>.*)", re.S)
_INCLUDE = re.compile(r'(?P<open>["<])(?P<name>[^">]+)[">]')
_USING = re.compile(r"using\s+namespace\s+(\w+(?:\s*::\s*\w+)*)\s*;")
_WORD = re.compile(r"[A-Za-z_]\w*")
_JOINED = re.compile(
    r'(\bextern\s*"C")(?=__)'
)  # extern "C"__global__ without a space, which C++17 reads as a user-defined literal

SPACES = frozenset("__global__ __device__ __constant__ __shared__ __managed__".split())
_CLASSES = frozenset("struct class union enum".split())
_ATTRIBUTES = frozenset(
    "__align__ alignas __attribute__ __declspec __launch_bounds__ __builtin_align__ decltype noexcept throw "
    "__cluster_dims__ __block_size__ requires explicit __maxnreg__".split()
)
_KEYWORDS = frozenset(
    "alignas auto bool char class const constexpr decltype default delete do double else enum explicit "
    "extern false float for friend if inline int long mutable namespace new noexcept nullptr operator "
    "private protected public register return short signed sizeof static static_assert struct switch "
    "template this true typedef typename union unsigned using virtual void volatile while "
    "__restrict__ __forceinline__ __noinline__ __host__ __device__ __global__ __constant__ __shared__ "
    "__managed__".split()
)


@dataclass(frozen=True)
class Token:
    """A token of C++ at the offset ``start`` of the text; blanks and comments are not tokens."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


_START = operator.attrgetter("start")


@dataclass
class SourceItem:
    """A declaration in a file, a namespace or a class, from ``start`` to ``end`` of the text.

    ``sort``: "device" is kept, "host" is removed, "either" is kept if a kept item mentions one of its names.
    """

    start: int
    end: int
    sort: str
    names: tuple[str, ...]
    mentions: set[str]
    namespace: str = ""  # the enclosing namespaces, with colons: "ns::"
    kernel: bool = False
    template: bool = False
    initialised: bool = False  # a variable with an initialiser
    inserted: list[tuple[int, str]] = field(default_factory=list)  # (offset, text) to add for NVRTC
    dropped: list[SourceItem] = field(default_factory=list)  # host functions of a class that is kept


@dataclass
class SourceFile:
    """A file's text, its tokens, the items that it declares and the headers that it includes."""

    name: str
    text: str
    tokens: list[Token]
    items: list[SourceItem]
    includes: list[tuple[int, int, str, bool]]  # (start, end, name, whether in quotes) of a header's name

    @functools.cached_property
    def directives(self) -> list[Token]:
        """The preprocessor directives among the tokens, in order."""
        return [token for token in self.tokens if token.kind == "directive"]

    @functools.cached_property
    def line_ends(self) -> list[int]:
        """The offset of each line's end."""
        return [m.start() for m in re.finditer("\n", self.text)]


@dataclass(frozen=True)
class DeviceSource:
    """A source without host code for NVRTC, and what error messages need to know about the rest.

    ``headers``: (name by which ``text`` includes it, text) of the author's own headers. ``host``: (name,
    "file:line") of removed declarations. ``missing``: headers that were not found, which are empty here.
    ``kernels``: (name, whether it is a template). ``initialised``: device variables with an initialiser.
    """

    text: str
    headers: tuple[tuple[str, str], ...] = ()
    host: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    kernels: tuple[tuple[str, bool], ...] = ()
    initialised: tuple[str, ...] = ()


def without_host_code(
    text: str,
    name: str,
    wanted: str,
    find: Callable[[str, str, bool], tuple[str, str] | None],
    known: Callable[[str], bool],
    alone: bool = False,
) -> DeviceSource:
    """``text`` of the file ``name`` without its host code.

    ``wanted``: the kernel's name in C++, such as ``kernel<Square, 16>``. ``alone``: keep of the device code
    only this kernel and what it mentions. ``find(header, including file, quoted)`` returns (name, text) of
    one of the author's own headers, or None; ``known(header)``: whether NVRTC has it.
    """
    files = _read(text, name, find)
    macros = _macros(files.values())
    for file in files.values():
        file.items = list(_Scope(file, macros).items())
    items = [item for file in files.values() for item in file.items]
    kernels = {item.namespace + n: item.template for item in items if item.kernel for n in item.names}
    kept = _reached(items, macros, set(_WORD.findall(wanted)), alone)
    host, missing, texts = {}, [], {}
    aliases = {
        n
        for file in files.values()
        for item in file.items
        for n in item.names
        if file.text.startswith("namespace", item.start)
    }
    for file in files.values():
        edits = _edits_of_items(file, kept, host)
        spans = [(start, end) for start, end, _ in edits]
        for start, end, header, quoted in file.includes:
            if any(a <= start < b for a, b in spans):
                continue
            found = find(header, file.name, quoted)
            if found:
                edits.append((start, end, f'"{found[0]}"'))
            elif not known(header):
                missing.append(header)
        edits += _declared_first(file, aliases)
        texts[file.name] = _edited(file.text, edits)
    own = texts.pop(name)
    initialised = tuple(item.namespace + n for item in items if item.initialised for n in item.names)
    return DeviceSource(
        own,
        tuple(texts.items()),
        tuple(host.items()),
        tuple(dict.fromkeys(missing)),
        tuple(kernels.items()),
        initialised,
    )


def _edits_of_items(file: SourceFile, kept: set[int], host: dict[str, str]) -> list[tuple[int, int, str]]:
    """The edits that replace items which are not kept by blanks; adds the names of host code to ``host``."""
    edits: list[tuple[int, int, str]] = []
    for item in file.items:
        if id(item) not in kept:
            edits.append((item.start, item.end, _blanked(file, item)))
            host.update({n: _place(file, item) for n in item.names if item.sort == "host"})
            continue
        for part in item.dropped:
            edits.append((part.start, part.end, _blanked(file, part)))
            host.update({n: _place(file, part) for n in part.names})
        edits += [(at, at, words) for at, words in item.inserted]
    return edits


def _read(text, name, find) -> dict[str, SourceFile]:
    """The file and all of the author's own headers that it includes, directly or indirectly, by name."""
    files: dict[str, SourceFile] = {}
    waiting = [(name, text)]
    while waiting:
        at, content = waiting.pop()
        if at in files:
            continue
        content = _JOINED.sub(r"\1 ", content.replace("\ufeff", ""))
        tokens = [
            Token(m.lastgroup, m.group(), m.start())
            for m in _TOKEN.finditer(content)
            if m.lastgroup and m.lastgroup != "blank"
        ]
        files[at] = SourceFile(at, content, tokens, [], [])
        for token in tokens:
            verb, rest = _directive(token)
            if verb == "include" and (m := _INCLUDE.match(rest)):
                start = token.end - len(rest)
                quoted = m["open"] == '"'
                files[at].includes.append((start, start + m.end(), m["name"], quoted))
                if found := find(m["name"], at, quoted):
                    waiting.append(found)
    return files


def _macros(files) -> dict[str, tuple[bool, set[str], bool]]:
    """{name: (takes arguments, words of its body, whether the body has a brace)} of all ``#define``."""
    out: dict[str, tuple[bool, set[str], bool]] = {}
    for file in files:
        for token in file.tokens:
            verb, rest = _directive(token)
            if verb != "define" or not (d := _DEFINE.match(rest)):
                continue
            words = set(_WORD.findall(d["body"]))
            call, before, brace = out.get(d["name"], (False, set(), False))
            out[d["name"]] = call or bool(d["call"]), before | words, brace or "{" in d["body"]
    return out


class _Scope:
    """Splits the tokens of a file, a namespace or a class into items."""

    def __init__(self, file: SourceFile, macros, start=0, end=None, namespace="", in_class=False):
        self.file, self.macros, self.namespace, self.in_class = file, macros, namespace, in_class
        self.tokens = file.tokens
        self.at, self.end = start, len(file.tokens) if end is None else end
        self.spaces = _expanding_to(macros, SPACES)
        self.kernels = _expanding_to(macros, {"__global__"})
        self.attributes = _expanding_to(macros, _ATTRIBUTES)

    def items(self) -> Iterator[SourceItem]:
        """The items, including those inside namespaces."""
        while self.at < self.end:
            token = self.tokens[self.at]
            if token.kind == "directive":
                self.at = (self._branch(self.at) if _directive(token)[0] == "if" else self.at) + 1
            elif token.text in (";", "}", ")"):
                self.at += 1
            elif self.in_class and token.text in ("public", "private", "protected"):
                self.at += 2
            elif (opened := self._container()) is not None:
                close = self._close(opened)
                words = [t.text for t in self.tokens[self.at : opened]]
                inner = "".join(words[words.index("namespace") + 1 :]) if "namespace" in words else ""
                inside = self.namespace + (f"{inner}::" if inner else "")
                yield from _Scope(self.file, self.macros, opened + 1, close, inside).items()
                self.at = close + 1
            else:
                yield self._item()

    def _text(self, i: int) -> str:
        """The text of token ``i``; "" after the last one."""
        return self.tokens[i].text if i < self.end else ""

    def _container(self) -> int | None:
        """The index of the opening brace of a namespace or ``extern "C"``, if one starts here."""
        words: list[str] = []
        for i in range(self.at, min(self.end, self.at + 12)):
            text = self.tokens[i].text
            if text == "{":
                linkage = words[:1] == ["extern"] and len(words) == 2
                return i if "namespace" in words[:2] or linkage else None
            if text in ("=", ";", "("):
                return None
            words.append(text)
        return None

    def _close(self, opened: int) -> int:
        """The index of the bracket that closes the one at ``opened``; of an ``#if`` one branch counts."""
        depth, i = 0, opened
        while i < self.end:
            token = self.tokens[i]
            if token.kind == "directive":
                i = self._branch(i)
            elif token.text in ("{", "(", "["):
                depth += 1
            elif token.text in ("}", ")", "]"):
                depth -= 1
                if depth <= 0:
                    return i
            i += 1
        return self.end - 1

    def _branch(self, i: int) -> int:
        """``i``, or the end of the ``#if`` branch that starts there and is to be skipped: inside an item only
        the first branch counts.
        """
        verb, rest = _directive(self.tokens[i])
        never = verb == "if" and rest.strip() in ("0", "false")
        if not never and verb not in ("else", "elif"):
            return i
        depth = 0
        for j in range(i + 1, self.end):
            verb, _ = _directive(self.tokens[j])
            if depth == 0 and (verb == "endif" or never and verb in ("else", "elif")):
                return j
            depth += (verb in ("if", "ifdef", "ifndef")) - (verb == "endif")
        return self.end - 1

    def _close_angle(self, opened: int) -> int:
        """The index of the ``>`` that closes the ``<`` at ``opened``."""
        depth, i = 0, opened
        while i < self.end:
            text = self.tokens[i].text
            if text in ("(", "[", "{"):
                i = self._close(i)
            depth += (text == "<") - (text == ">")
            if depth == 0 or text == ";":
                return i
            i += 1
        return self.end - 1

    def _item(self) -> SourceItem:
        """The item that starts here and ends with a semicolon or a function's body."""
        d = _Declaration(first=self.at)
        i = self.at
        while i < self.end:
            token = self.tokens[i]
            text = token.text
            before = self.tokens[i - 1].text if i > d.first else ""
            if text == ";":
                break
            if text == "}":
                i -= 1
                break
            if token.kind == "directive":
                i = self._branch(i)
            elif text == "template" and self._text(i + 1) == "<":
                d.template, i = True, self._close_angle(i + 1)
            elif text in ("(", "["):
                closed = self._close(i)
                if text == "(" and not d.value and not self._is_attribute(i, d.first):
                    if self._expands(i, d.first):
                        d.function, d.name, i = True, before, closed
                        break
                    if not d.function and self._text(i + 1) in ("*", "&"):  # float (*name)(float)
                        d.pointer = next((t.text for t in self.tokens[i:closed] if t.kind == "word"), "")
                        if self._text(closed + 1) == "(":
                            closed = self._close(closed + 1)
                    elif not d.function:
                        d.function, d.name = True, d.last_name()
                i = closed
            elif text == "{":
                closed = self._close(i)
                in_list = d.constructor and before not in (")", "}")
                if d.is_class():
                    d.class_body = (i, closed)
                elif d.function and not d.value and not in_list:
                    d.body, i = True, closed
                    break
                else:
                    d.initialised = True
                i = closed
            else:
                if text == "," and d.value and self._declares(i + 1):  # const int N = 4, M = N * N;
                    d.value = False
                if not d.value:
                    d.head.append(token)
                d.value = d.value or text == "=" and before != "operator"
                d.initialised = d.initialised or d.value
                d.constructor = d.constructor or d.function and text == ":"
            i += 1
        d.last = min(i, self.end - 1)
        self.at = d.last + 1
        return self._classified(d)

    def _declares(self, i: int) -> bool:
        """Whether another variable of the same declaration starts at token ``i``."""
        while self._text(i) == "*":
            i += 1
        return i < self.end and self.tokens[i].kind == "word" and self._text(i + 1) in _AFTER_A_NAME

    def _is_attribute(self, opened: int, first: int) -> bool:
        """Whether a parenthesis belongs to an attribute: ``struct __align__(16) Name``."""
        before = [t.text for t in self.tokens[max(first, opened - 2) : opened]]
        return before[-1:] != [] and (before[-1] in self.attributes or before[0] in _CLASSES)

    def _without_variables(self, d: _Declaration, names) -> tuple[tuple[str, ...], list[SourceItem]]:
        """(names of the declared type, host variables that the declaration ends with)."""
        closed = d.class_body[1] if d.class_body else d.last
        if closed + 1 >= d.last:
            return names, []
        start = self.tokens[closed + 1].start
        own = {t.text for t in d.head if t.start > start}
        rest = SourceItem(start, self.tokens[d.last].start, "host", tuple(own), set())
        return tuple(name for name in names if name not in own), [rest]

    def _expands(self, opened: int, first: int) -> bool:
        """Whether the item is a macro for a whole definition, such as ``DEFINE_KERNEL(add, +)``."""
        call, _, brace = self.macros.get(self.tokens[first].text, (False, set(), False))
        return call and brace and opened == first + 1

    def _classified(self, d: _Declaration) -> SourceItem:
        """The SourceItem of a declaration, with its sort, names and mentions."""
        tokens = self.tokens[d.first : d.last + 1]
        words = [t.text for t in d.head]
        dropped: list[SourceItem] = []
        inserted: list[tuple[int, str]] = []
        names = _names(self.tokens, d)
        plain = "__host__" not in words and d.head
        if words[:1] == ["static_assert"]:
            sort, names = "either", ("static_assert",)
        elif any(w in self.spaces for w in words) or words[:1] in (["texture"], ["surface"]):
            sort = "device"
        elif d.function and words[:1] not in (["typedef"], ["using"]):
            ending = tokens[-2].text if len(tokens) > 1 else ""
            constant = not {"constexpr", "consteval"}.isdisjoint(words)
            if plain and (constant or self.in_class and d.value and ending == "0"):
                inserted.append((d.head[0].start, "__host__ __device__ "))
            settled = self.in_class and d.value and ending in ("0", "default", "delete")
            sort = "either" if constant or settled else "host"
        elif d.class_body or self.in_class or not _DECLARES_A_TYPE.isdisjoint(words):
            sort = "either"
        else:
            sort = "host"
        if d.class_body and sort == "either" and not self.in_class and {"typedef", "const"}.isdisjoint(words):
            names, variables = self._without_variables(d, names)
            dropped += variables
        if d.class_body and "enum" not in words:
            first, last = d.class_body
            members = list(_Scope(self.file, self.macros, first + 1, last, in_class=True).items())
            dropped += [m for m in members if m.sort == "host"] + [x for m in members for x in m.dropped]
            inserted += [one for m in members for one in m.inserted]
        gone = [(x.start, x.end) for x in dropped]
        mentions = {
            t.text for t in tokens if t.kind == "word" and not any(a <= t.start < b for a, b in gone)
        } - _KEYWORDS
        initialised = sort == "device" and not d.function and d.initialised
        kernel = d.function and d.body and not self.kernels.isdisjoint(words)
        return SourceItem(
            tokens[0].start,
            tokens[-1].end,
            sort,
            names,
            mentions,
            self.namespace,
            kernel,
            d.template,
            initialised,
            inserted,
            dropped,
        )


_AFTER_A_NAME = frozenset("=[{;,")
_DECLARES_A_TYPE = _CLASSES | {"typedef", "using", "namespace", "const", "constexpr", "friend"}


@dataclass
class _Declaration:
    """The state of parsing one item."""

    first: int
    last: int = 0
    head: list[Token] = field(default_factory=list)  # tokens outside of brackets, before an initialiser
    name: str = ""  # the name of a function
    pointer: str = ""  # the name in float (*name)(float)
    function: bool = False  # it has parameters
    body: bool = False
    value: bool = False  # the tokens that follow are an initialiser
    initialised: bool = False
    constructor: bool = False  # it has a list of member initialisers
    template: bool = False
    class_body: tuple[int, int] | None = None  # indices of its braces

    def is_class(self) -> bool:
        """Whether a brace here opens the body of a class or an enumeration."""
        return not (self.function or self.value or self.class_body) and any(
            t.text in _CLASSES for t in self.head
        )

    def last_name(self) -> str:
        """The last name in the head that is not inside template arguments."""
        depth = 0
        for token in reversed(self.head):
            depth += (token.text == ">") - (token.text == "<")
            if not depth and token.kind == "word":
                return token.text
        return ""


def _directive(token: Token) -> tuple[str, str]:
    """("if", "N > 3") for ``#if N > 3``; ("", "") for other tokens."""
    m = _DIRECTIVE.match(token.text) if token.kind == "directive" else None
    return (m["verb"], m["rest"]) if m else ("", "")


def _expanding_to(macros, words) -> set[str]:
    """``words``, and all macros that expand to one of them, directly or indirectly."""
    out = set(words)
    while more := {name for name, (_, body, _) in macros.items() if body & out} - out:
        out |= more
    return out


def _names(tokens: list[Token], d: _Declaration) -> tuple[str, ...]:
    """The names that an item declares; () for an operator and for ``using namespace``."""
    words = [t.text for t in d.head]
    if words[:1] == ["using"]:
        if "namespace" in words[:2] or len(words) < 2:
            return ()
        return (words[1],) if "=" in words else (words[-1],)
    if words[:1] == ["namespace"]:
        return tuple(words[1:2])
    if "operator" in words:
        return ()
    if d.function and words[:1] != ["typedef"]:
        return (d.name,)
    out = [d.pointer]
    if d.class_body:
        opened, closed = d.class_body
        before = [t for t in d.head if t.start < tokens[opened].start]
        key = max(i for i, t in enumerate(before) if t.text in _CLASSES)
        out += [t.text for t in before[key + 1 :] if t.kind == "word" and t.text not in _ATTRIBUTES][:1]
        out += [t.text for t in d.head if t.kind == "word" and t.start > tokens[closed].start]
        if "enum" in words:
            out += [t.text for t in tokens[opened:closed] if t.kind == "word"]
    else:
        heads = {t.start for t in d.head}
        for i in range(d.first, d.last + 1):
            following = tokens[i + 1].text if i < d.last else ";"
            if tokens[i].start in heads and tokens[i].kind == "word" and following in _AFTER_A_NAME:
                out.append(tokens[i].text)
    return tuple(dict.fromkeys(w for w in out if w and w not in _KEYWORDS))


def _reached(items, macros, wanted: set[str], alone: bool) -> set[int]:
    """The ids of the items to keep: device code and everything that it mentions, also through macros.

    ``alone``: keep only device code that is reached from the names in ``wanted``.
    """
    by_name: dict[str, list[SourceItem]] = {}
    for item in items:
        for name in item.names:
            if item.sort == "either" or alone and item.sort == "device":
                by_name.setdefault(name, []).append(item)
    kept = {id(item) for item in items if item.sort != "host" and not item.names}
    kept |= {id(item) for item in items if item.sort == "device" and not alone}
    waiting = set(wanted).union(*(item.mentions for item in items if id(item) in kept))
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting |= macros.get(name, (False, set(), False))[1]
        for item in by_name.get(name, []):
            kept.add(id(item))
            waiting |= item.mentions
    gone = {name for item in items if id(item) not in kept for name in item.names}
    for item in items:  # a static_assert is kept unless it mentions removed names
        if item.names == ("static_assert",) and not item.mentions & (gone - {"static_assert"}):
            kept.add(id(item))
    return kept


def _declared_first(file: SourceFile, aliases: set[str]) -> list[tuple[int, int, str]]:
    """The edits that declare ``cv`` before ``using namespace cv``, as its header may be empty here."""
    return [
        (item.start, item.start, f"namespace {m[1]} {{}} ")
        for item in file.items
        if (m := _USING.match(file.text, item.start)) and m[1].split("::")[0].strip() not in aliases
    ]


def _place(file: SourceFile, item: SourceItem) -> str:
    """``file:line`` of an item's start."""
    return f"{file.name.rsplit('/', 1)[-1]}:{bisect.bisect_left(file.line_ends, item.start) + 1}"


def _blanked(file: SourceFile, item: SourceItem) -> str:
    """The text of an item with everything but line ends, ``#if`` and ``#define`` replaced by blanks."""
    text = file.text[item.start : item.end]
    out = list(re.sub(r"[^\n]", " ", text))
    first, last = (bisect.bisect_left(file.directives, at, key=_START) for at in (item.start, item.end))
    for token in file.directives[first:last]:
        if _directive(token)[0] not in ("pragma", "include", "error"):
            at = token.start - item.start
            out[at : at + len(token.text)] = token.text
    return "".join(out)


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
