"""Random PTX programs over ``ptx_forms``, and what checks a run of one, step by step.

A program is a list of statements. Every instruction in it is followed by a store of what it wrote, so that
the checker judges each step from the values that the step before it really left: a NaN's payload or an
approximation, which the manual leaves open, cannot lead to a difference later on.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass

import ptx_oracle as manual
from ptx_forms import FORMS, Form
from ptx_oracle import mask, width

SHARE = {"pred": 4, "b16": 5, "b32": 7, "f32": 4, "b64": 5, "f64": 3}  # registers of each kind
STEM = {"pred": "%p", "b16": "%h", "b32": "%r", "f32": "%f", "b64": "%d", "f64": "%e"}
FRAMES = 3  # the most iterations of a loop
AREA = 32  # bytes of a lane's own in each memory
CELL_BYTES = 512  # of an atomic statement's cells: eight bytes for each of 64 lanes
SPACES = ("global", "shared", "local")
MEMORY_TYPES = (
    *("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32"),
    *("b64", "u64", "s64", "f64"),
)
ATOMIC_FORMS = (
    *(("add", k) for k in ("u32", "s32", "u64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2")),
    *((op, k) for op in ("min", "max") for k in ("u32", "s32", "u64", "s64")),
    *((op, k) for op in ("and", "or", "xor") for k in ("b32", "b64")),
    *(("exch", "b32"), ("exch", "b64"), ("cas", "b16"), ("cas", "b32"), ("cas", "b64")),
    *(("inc", "u32"), ("dec", "u32")),
)


@dataclass(frozen=True)
class Op:
    """An instruction, under a guard (register, negated) or none."""

    form: Form
    results: tuple[str, ...]
    sources: tuple  # registers, "!%p1", or ints
    guard: tuple[str, bool] | None = None


@dataclass(frozen=True)
class Store:
    """``st`` of registers at a lane's own bytes, or ``ld`` of them: ``generic`` through a generic address."""

    opcode: str
    space: str
    kind: str
    registers: tuple[str, ...]
    offset: int
    generic: bool


@dataclass(frozen=True)
class Atomic:
    """``atom`` or ``red``: lanes whose numbers agree modulo ``sharing`` use a cell, which holds ``start``."""

    opcode: str
    operation: str
    kind: str
    space: str
    result: str
    sources: tuple[str, ...]
    sharing: int
    start: int
    number: int


@dataclass(frozen=True)
class If:
    predicate: str
    then: tuple
    other: tuple


@dataclass(frozen=True)
class Loop:
    """``body`` as often as the two low bits of a register say."""

    counter: str
    body: tuple


@dataclass(frozen=True)
class Call:
    """A device function of one or two of the exact forms: f(a, b) = second(first(a, b), ...)."""

    forms: tuple[Form, ...]
    result: str
    sources: tuple


@dataclass
class Program:
    statements: tuple
    threads: int
    inputs: dict[str, list[int]]  # register -> a pattern for each thread


# values


def edge(rng: random.Random, kind: str) -> int:
    """A pattern of ``kind``, mostly from where instructions differ."""
    base = kind.removesuffix("x2")
    if kind.endswith("x2"):
        return edge(rng, base) << 16 | edge(rng, base)
    if kind == "pred":
        return rng.getrandbits(1)
    if kind in manual.FORMATS:
        return _edge_of_float(rng, kind)
    bits = width(kind)
    match rng.randrange(6):
        case 0:
            return rng.getrandbits(bits)
        case 1:
            return rng.choice(
                (0, 1, 2, mask(bits), mask(bits) - 1, 1 << bits - 1, mask(bits - 1), (1 << bits - 1) + 1)
            )
        case 2:
            return rng.randrange(-70, 71) & mask(bits)
        case 3:
            return ((1 << rng.randrange(bits)) + rng.randrange(-1, 2)) & mask(bits)
        case 4:  # what conversions round: high bits set, and a few at the end
            return (
                rng.getrandbits(12) << max(bits - 12 - rng.randrange(4), 0) | rng.choice((0, 1, 3))
            ) & mask(bits)
        case _:
            fmt = {16: ("f16", "bf16"), 32: ("f32",), 64: ("f64",)}[bits]
            return _edge_of_float(rng, rng.choice(fmt))


def _edge_of_float(rng: random.Random, fmt: str) -> int:
    exponent_bits, fraction_bits = manual.FORMATS[fmt]
    bias, sign = mask(exponent_bits - 1), rng.getrandbits(1) * manual.sign_bit(fmt)
    match rng.randrange(9):
        case 0:
            magnitude = rng.choice(
                (0, 0, manual.infinity(fmt), manual.infinity(fmt) + 1 + rng.getrandbits(3))
            )
        case 1:  # subnormal, or the smallest normal
            magnitude = rng.choice(
                (1, 2, mask(fraction_bits), 1 << fraction_bits, rng.getrandbits(fraction_bits))
            )
        case 2:
            magnitude = manual.infinity(fmt) - 1 - rng.choice((0, 0, 1, 1 << fraction_bits))
        case 3:  # small whole numbers and halves
            return sign | manual.rounded(manual.Fraction(rng.randrange(0, 40), rng.choice((1, 2, 4))), fmt)
        case 4:  # near a power of two that is the bound of an integer type
            power = manual.Fraction(2) ** rng.choice((7, 8, 15, 16, 31, 32, 63, 64))
            magnitude = manual.rounded(power, fmt) + rng.choice((-1, 0, 1))
        case 5:  # half-way between two values of a narrower format, or one step beside that
            keep = rng.choice([b for b in (2, 3, 7, 10, 23) if b < fraction_bits] or [1])
            fraction = (rng.getrandbits(keep) * 2 + 1) << fraction_bits - keep - 1
            fraction = (fraction + rng.choice((-1, 0, 0, 1))) & mask(fraction_bits)
            low = rng.choice((-14, -24, 0, 3, -126, -149, 15))
            exponent = min(max(bias + low + rng.randrange(-2, 3), 0), mask(exponent_bits) - 1)
            magnitude = exponent << fraction_bits | fraction
        case 6:  # near one: sums and products that cancel or end half-way
            exponent = bias + rng.randrange(-2, 3)
            magnitude = exponent << fraction_bits | rng.choice(
                (0, 1, mask(fraction_bits), 1 << fraction_bits - 1, 1 << rng.randrange(fraction_bits))
            )
        case 7:
            magnitude = (bias + rng.randrange(-12, 13)) << fraction_bits | rng.getrandbits(fraction_bits)
        case _:
            return rng.getrandbits(1 + exponent_bits + fraction_bits)
    return sign | magnitude


# programs


def container(kind: str) -> str:
    """The kind of register that holds a value."""
    kind = kind.lstrip("!")
    if kind in ("pred", "f32", "f64"):
        return kind
    if kind in ("segment", "byte", "tf32"):
        return "b32"
    return f"b{kind.split('@')[1]}" if "@" in kind else f"b{width(kind)}"


@functools.cache
def pool(kind: str) -> tuple[int, ...]:
    """Patterns of a kind that programs choose their inputs from."""
    rng = random.Random(kind)
    return tuple(edge(rng, kind) for _ in range(3000))


class Generator:
    """Writes programs. ``forms`` are what it chooses from, each opcode as likely as another."""

    def __init__(self, forms=FORMS):
        self.by_opcode: dict[str, list[Form]] = {}
        for form in forms:
            self.by_opcode.setdefault(form.opcode, []).append(form)
        self.opcodes = list(self.by_opcode)
        self.exact = [f for f in forms if _fits_a_callee(f)]
        self.carries = [f for f in forms if f.group == "carry"]

    def program(self, seed) -> Program:
        rng = self.rng = random.Random(seed)
        self.cells = 0
        statements = tuple(s for _ in range(rng.randrange(4, 9)) for s in self.statement(top=True))
        return self.with_inputs(statements)

    def of_one(self, form: Form, seed) -> Program:
        """A program of one instruction, a chain of two where it takes a carry."""
        self.rng = random.Random(seed)
        before = [f for f in self.carries if f.opcode == "add"][:1] if form.group == "carry" else []
        return self.with_inputs(tuple(self.op(f, guarded=False) for f in (*before, form)))

    def with_inputs(self, statements) -> Program:
        rng, inputs = self.rng, {}
        threads = rng.choice((32, 32, 32, 45))
        flavours = {
            "b16": ("u16", "f16", "bf16"),
            "b32": ("u32", "f32", "f16x2", "bf16x2"),
            "b64": ("u64", "f64"),
        }
        for name in sorted(registers_of(statements)):
            kind = next(k for k, stem in STEM.items() if name.startswith(stem))
            patterns = pool(rng.choice(flavours.get(kind, (kind,))))
            inputs[name] = rng.choices(patterns, k=threads)
            if rng.random() < 0.1:  # all lanes alike
                inputs[name] = inputs[name][:1] * threads
        return Program(statements, threads, inputs)

    def statement(self, top: bool = False, looping: bool = False) -> list:
        rng, choice = self.rng, self.rng.random()
        if choice < 0.62:
            return [self.op(self.some_form("lane"))]
        if choice < 0.70:
            return self.carry_chain()
        if choice < 0.76:
            return [self.op(self.some_form("warp"), guarded=False)]
        if choice < 0.84:
            return self.memory()
        if choice < 0.88:
            return [self.atomic()]
        if choice < 0.91:
            return [self.call()]
        if not top and not looping:
            return [self.op(self.some_form("lane"))]
        if choice < 0.96:
            arms = [tuple(s for _ in range(rng.randrange(0, 3)) for s in self.statement()) for _ in range(2)]
            return [If(self.register("pred"), *arms)]
        if not top:
            return [self.op(self.some_form("lane"))]
        body = tuple(s for _ in range(rng.randrange(1, 3)) for s in self.statement(looping=True))
        return [Loop(self.register("b32"), body)]

    def some_form(self, group: str) -> Form:
        while True:
            form = self.rng.choice(self.by_opcode[self.rng.choice(self.opcodes)])
            if form.group == group:
                return form

    def register(self, kind: str) -> str:
        return f"{STEM[kind]}{self.rng.randrange(SHARE[kind])}"

    def held(self, kind: str) -> str:
        """A register for a value of ``kind``: floats lie in registers of their type or of bits."""
        kind = container(kind)
        if kind in ("f32", "f64") and self.rng.random() < 0.3:
            kind = f"b{width(kind)}"
        return self.register(kind)

    def source(self, form: Form, kind: str):
        if ":" in kind:
            return self.rng.randrange(int(kind.split(":")[1]) + 1)
        if kind == "segment":
            return self.rng.choice((31, 0, 0x1800 | 7, 0x181F, 0x1C03, 0x100F, self.rng.getrandbits(13)))
        if kind == "byte":
            return self.rng.randrange(256) if self.rng.random() < 0.3 else self.register("b32")
        if kind == "!pred":
            return self.rng.choice(("", "!")) + self.register("pred")
        if form.literals and kind != "pred" and self.rng.random() < 0.12 and form.group != "warp":
            return edge(self.rng, kind)
        return self.held(kind)

    def op(self, form: Form, guarded: bool = True) -> Op:
        results = tuple(self.held(kind) for kind in form.results)
        while len(set(results)) < len(results):
            results = tuple(self.held(kind) for kind in form.results)
        sources = tuple(self.source(form, kind) for kind in form.sources)
        guard = (
            (self.register("pred"), self.rng.random() < 0.5) if guarded and self.rng.random() < 0.12 else None
        )
        return Op(form, results, sources, guard)

    def carry_chain(self) -> list[Op]:
        """Sets the flag, passes it on, and takes it: additions and products, or subtractions."""
        subtracts = self.rng.random() < 0.35
        ours = [f for f in self.carries if f.opcode.startswith("sub") == subtracts]
        last = [f for f in ours if f.opcode.endswith("c")]
        chain = [self.rng.choice([f for f in ours if f not in last])]
        chain += [self.rng.choice([f for f in last if ".cc" in f.name]) for _ in range(self.rng.randrange(3))]
        return [self.op(form, guarded=False) for form in (*chain, self.rng.choice(last))]

    def memory(self) -> list[Store]:
        """A store and a load of bytes that overlap."""
        rng, space = self.rng, self.rng.choice(SPACES)
        out = []
        for opcode in ("st", "ld"):
            kind = rng.choice(MEMORY_TYPES)
            size = width(kind) // 8
            count = rng.choice([n for n in (1, 1, 2, 4) if n * size <= 16])
            offset = rng.randrange(0, AREA // (count * size)) * count * size
            if opcode == "ld" and rng.random() < 0.7:
                offset = min(out[0].offset // (count * size) * count * size, AREA - count * size)
            wide = rng.random() < 0.15 and size < 8
            held = {
                1: "b32",
                2: "b16",
                4: kind if kind == "f32" else "b32",
                8: kind if kind == "f64" else "b64",
            }[size]
            held = "b64" if wide else held
            names = rng.sample([f"{STEM[held]}{i}" for i in range(SHARE[held])], min(count, SHARE[held]))
            if len(names) < count:
                names, offset = names[:1], offset
            if len(names) == 3:
                names = names[:2]
            out.append(Store(opcode, space, kind, tuple(names), offset, rng.random() < 0.3))
        return out

    def atomic(self) -> Atomic:
        rng = self.rng
        operation, kind = rng.choice(ATOMIC_FORMS)
        opcode = "red" if operation not in ("exch", "cas") and rng.random() < 0.3 else "atom"
        register = f"b{width(kind)}" if kind not in ("f32", "f64") else kind
        sources = tuple(self.register(register) for _ in range(2 if operation == "cas" else 1))
        sharing = rng.choice((32, 32, 8, 4)) if opcode == "atom" else 32
        space = rng.choice(("global", "shared", "global.generic", "shared.generic"))
        self.cells += 1
        start = edge(rng, {"b16": "u16", "b32": "u32", "b64": "u64"}.get(kind, kind))
        return Atomic(
            opcode, operation, kind, space, self.register(register), sources, sharing, start, self.cells - 1
        )

    def call(self) -> Call:
        forms = [self.rng.choice(self.exact) for _ in range(self.rng.randrange(1, 3))]
        if len(forms) == 2 and not any(width(k) == width(forms[0].results[0]) for k in forms[1].sources):
            forms = forms[:1]
        first = forms[0]
        sources = tuple(self.register(f"b{width(k)}") for k in first.sources)
        return Call(tuple(forms), self.register(f"b{width(forms[-1].results[0])}"), sources)


def _fits_a_callee(form: Form) -> bool:
    """Whether a device function can be made of it: one integer, of integers in registers of their width."""
    kinds = (*form.results, *form.sources)
    words = all(k[0] in "bsu" and not set(":@x") & set(k) for k in kinds) and not {"segment", "byte"} & set(
        kinds
    )
    return form.exact and len(form.results) == 1 and words and not form.template


def each(statements):
    """All statements, those inside others too."""
    for s in statements:
        yield s
        for part in (getattr(s, "then", ()), getattr(s, "other", ()), getattr(s, "body", ())):
            yield from each(part)


def forms_of(statements):
    for s in each(statements):
        yield from (s.form,) if isinstance(s, Op) else getattr(s, "forms", ())


def registers_of(statements) -> set[str]:
    names = set()
    for s in each(statements):
        match s:
            case Op():
                names |= {*s.results, *(x.lstrip("!") for x in s.sources if isinstance(x, str))}
                names |= {s.guard[0]} if s.guard else set()
            case Store():
                names |= set(s.registers)
            case Atomic():
                names |= {s.result, *s.sources}
            case If():
                names.add(s.predicate)
            case Loop():
                names.add(s.counter)
            case Call():
                names |= {s.result, *s.sources}
    return names - {"_"}


# text

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"


class Writer:
    """A program as PTX. ``slots`` tells where each statement leaves what it wrote."""

    def __init__(self, program: Program):
        self.program, self.lines, self.functions = program, [], []
        self.slots: dict[int, list[int]] = {}  # id of a statement -> a slot for each register that it writes
        self.used, self.labels, self.counters = 0, 0, 0
        self.order = sorted(program.inputs)
        self.row = 8 * program.threads
        self.body(program.statements)

    def body(self, statements) -> None:
        for s in statements:
            getattr(self, f"_{type(s).__name__.lower()}")(s)

    def label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}"

    def trace(self, statement, names) -> None:
        slots = self.slots[id(statement)] = []
        for name in names:
            slots.append(self.used)
            self.lines.append(
                f"st.global.b{self.bits(name)} [%tr+{self.used * self.row}], {self.word(name)};"
            )
            self.used += 1

    @staticmethod
    def bits(name: str) -> int:
        return {"%p": 32, "%h": 16, "%r": 32, "%f": 32, "%d": 64, "%e": 64, "%a": 32}[name[:2]]

    def word(self, name: str) -> str:
        if name.startswith("%p"):
            self.lines.append(f"selp.b32 %t0, 1, 0, {name};")
            return "%t0"
        return name

    def _op(self, s: Op) -> None:
        operands = [*s.results, *(self.literal(s.form, i, x) for i, x in enumerate(s.sources))]
        template = s.form.template or ", ".join(f"{{{i}}}" for i in range(len(operands)))
        if s.form.group == "warp" and s.form.opcode != "activemask":
            self.lines.append("activemask.b32 %members;")
        guard = f"@{'!' * s.guard[1]}{s.guard[0]} " if s.guard else ""
        self.lines.append(f"{guard}{s.form.name} {template.format(*operands)};")
        self.trace(s, s.results)

    @staticmethod
    def literal(form: Form, place: int, x) -> str:
        if isinstance(x, str):
            return x
        kind = form.sources[place]
        if kind in ("f32", "f64"):
            return f"0{'f' if kind == 'f32' else 'd'}{x:0{width(kind) // 4}X}"
        return (
            str(manual.integer(x, kind))
            if kind[0] in "us" and ":" not in kind and kind != "segment"
            else hex(x)
        )

    def address(self, space: str, generic: bool, cells: bool = False) -> tuple[str, str]:
        place = f"%{'cell' if cells else 'area'}_{space}"
        return (f"{place}_generic", "") if generic else (place, f".{space}")

    def _store(self, s: Store) -> None:
        base, space = self.address(s.space, s.generic)
        count = len(s.registers)
        names = ", ".join(s.registers)
        names = f"{{{names}}}" if count > 1 else names
        vector = f".v{count}" if count > 1 else ""
        where = f"[{base}+{s.offset}]"
        operands = f"{where}, {names}" if s.opcode == "st" else f"{names}, {where}"
        self.lines.append(f"{s.opcode}{space}{vector}.{s.kind} {operands};")
        if s.opcode == "ld":
            self.trace(s, s.registers)

    def _atomic(self, s: Atomic) -> None:
        space, generic = s.space.split(".")[0], s.space.endswith("generic")
        base, mod = self.address(space, generic, cells=True)
        lanes = f"%cell{s.sharing}"
        wide = width(s.kind)
        plain, plain_mod = self.address(space, False, cells=True)
        kind = "u64" if plain.startswith("%cell_global") else "u32"
        offset = s.number * CELL_BYTES
        start = f"{{%t{'0' if wide <= 32 else '1'}}}"
        where = f"%cell_at_{kind}"
        self.lines.append(f"add.{kind} {where}, {plain}, {lanes}_{kind};")
        self.lines.append(f"mov.b{max(wide, 32)} {start.strip('{}')}, {hex(s.start)};")
        store = f"st{plain_mod}.b{wide}" if wide > 16 else f"st{plain_mod}.u16"
        value = "%t2" if wide == 16 else start.strip("{}")
        if wide == 16:
            self.lines.append("cvt.u16.u32 %t2, %t0;")
        self.lines.append(f"{store} [{where}+{offset}], {value};")
        self.lines += ["activemask.b32 %members;", "bar.warp.sync %members;"]
        if generic:
            self.lines.append(f"add.u64 %cell_at_any, {base}, {lanes}_u64;")
        at = f"[{'%cell_at_any' if generic else where}+{offset}]"
        noftz = ".noftz" if s.kind in ("f16", "f16x2", "bf16", "bf16x2") else ""
        target = f"{s.result}, " if s.opcode == "atom" else ""
        operands = ", ".join(s.sources)
        self.lines.append(f"{s.opcode}{mod}.{s.operation}{noftz}.{s.kind} {target}{at}, {operands};")
        self.lines.append("bar.warp.sync %members;")
        final = {16: "%t2", 32: "%t0", 64: "%t1"}[wide]
        self.lines.append(f"ld{plain_mod}.{'u16' if wide == 16 else f'b{wide}'} {final}, [{where}+{offset}];")
        slots = [self.used, self.used + 1]
        self.lines.append(f"st.global.b{wide} [%tr+{self.used * self.row}], {final};")
        self.used += 1
        if s.opcode == "atom":
            self.trace(s, (s.result,))
        self.slots[id(s)] = slots[: 2 if s.opcode == "atom" else 1]

    def _if(self, s: If) -> None:
        other, end = self.label(), self.label()
        self.lines.append(f"@!{s.predicate} bra {other};")
        self.body(s.then)
        self.lines += [f"bra {end};", f"{other}:"]
        self.body(s.other)
        self.lines.append(f"{end}:")

    def _loop(self, s: Loop) -> None:
        top, end = self.label(), self.label()
        self.lines += [
            f"and.b32 %count, {s.counter}, 3;",
            "setp.eq.u32 %q, %count, 0;",
            f"@%q bra {end};",
            f"{top}:",
        ]
        self.body(s.body)
        self.lines += [
            "add.u64 %tr, %tr, FRAME;",
            "sub.u32 %count, %count, 1;",
            "setp.ne.u32 %q, %count, 0;",
            f"@%q bra {top};",
            f"{end}:",
            "mov.u64 %tr, %out;",
        ]

    def _call(self, s: Call) -> None:
        name = f"callee{len(self.functions)}"
        kinds = [f"b{width(k)}" for k in s.forms[0].sources]
        result = f"b{width(s.forms[-1].results[0])}"
        params = ", ".join(f".param .{k} {name}_param_{i}" for i, k in enumerate(kinds))
        lines = [f".func (.param .{result} func_retval0) {name}({params})", "{"]
        lines += [f".reg .{k} %x{i};" for i, k in enumerate(kinds)]
        lines += [f".reg .b{width(f.results[0])} %y{i};" for i, f in enumerate(s.forms)]
        lines += [f"ld.param.{k} %x{i}, [{name}_param_{i}];" for i, k in enumerate(kinds)]
        for i, form in enumerate(s.forms):
            operands = ", ".join((f"%y{i}", *second_operands(s.forms, i)))
            lines.append(f"{form.name} {operands};")
        lines += [f"st.param.{result} [func_retval0], %y{len(s.forms) - 1};", "ret;", "}"]
        self.functions.append("\n".join(lines))
        self.lines.append("{")
        for i, (k, x) in enumerate(zip(kinds, s.sources)):
            self.lines += [f".param .{k} param{i};", f"st.param.{k} [param{i}], {x};"]
        given = ", ".join(f"param{i}" for i in range(len(kinds)))
        self.lines += [f".param .{result} retval0;", f"call.uni (retval0), {name}, ({given});"]
        self.lines += [f"ld.param.{result} {s.result}, [retval0];", "}"]
        self.trace(s, (s.result,))

    def text(self) -> str:
        p = self.program
        cells = CELL_BYTES * sum(isinstance(s, Atomic) for s in each(p.statements))
        size = p.threads * AREA
        first = [
            "ld.param.u64 %in, [k_param_0];",
            "ld.param.u64 %out, [k_param_1];",
            "ld.param.u64 %area_global, [k_param_2];",
            "mov.u32 %lane, %tid.x;",
            "mul.wide.u32 %t1, %lane, 8;",
            "add.u64 %in, %in, %t1;",
            "add.u64 %out, %out, %t1;",
            "mov.u64 %tr, %out;",
        ]
        used = {s.space.split(".")[0] for s in each(p.statements) if isinstance(s, (Store, Atomic))}
        if used:
            first += [f"mul.wide.u32 %t1, %lane, {AREA};", f"add.u64 %cell_global, %area_global, {size};"]
            first += [
                "add.u64 %area_global, %area_global, %t1;",
                "mov.u64 %area_global_generic, %area_global;",
            ]
            first += ["mov.u64 %cell_global_generic, %cell_global;", "cvt.u32.u64 %t0, %t1;"]
            first += ["mov.u32 %area_shared, areas;", "add.u32 %area_shared, %area_shared, %t0;"]
            first += [f"mov.u32 %cell_shared, areas; add.u32 %cell_shared, %cell_shared, {size};"]
            for part in ("area", "cell"):
                first += [
                    f"cvt.u64.u32 %t1, %{part}_shared;",
                    f"cvta.shared.u64 %{part}_shared_generic, %t1;",
                ]
            first += [
                "mov.u64 %area_local, mine;",
                "cvta.local.u64 %area_local_generic, %area_local;",
                "mov.b32 %t0, 0;",
            ]
            for space in sorted(used):
                for at in (0, 16):
                    first.append(f"st.{space}.v4.b32 [%area_{space}+{at}], {{%t0, %t0, %t0, %t0}};")
        for sharing in sorted({s.sharing for s in each(p.statements) if isinstance(s, Atomic)}):
            first += [
                f"and.b32 %t0, %lane, {sharing - 1};",
                "and.b32 %t3, %lane, 32;",
                "add.u32 %t0, %t0, %t3;",
                f"shl.b32 %cell{sharing}_u32, %t0, 3;",
                f"cvt.u64.u32 %cell{sharing}_u64, %cell{sharing}_u32;",
            ]
        for i, name in enumerate(self.order):
            at = f"[%in+{i * self.row}]"
            if name.startswith("%p"):
                first += [f"ld.global.b32 %t0, {at};", f"setp.ne.b32 {name}, %t0, 0;"]
            else:
                first.append(f"ld.global.b{self.bits(name)} {name}, {at};")
        declared = " ".join(f".reg .{k} {stem}<{SHARE[k]}>;" for k, stem in STEM.items())
        own = """.reg .b32 %t0, %t3, %lane, %members, %count, %area_shared, %cell_shared, %cell_at_u32;
        .reg .b16 %t2; .reg .pred %q; .reg .b64 %t1, %in, %out, %tr, %area_global, %area_local, %cell_global,
        %area_global_generic, %area_shared_generic, %area_local_generic, %cell_global_generic,
        %cell_shared_generic, %cell_at_u64, %cell_at_any;
        .reg .b32 %cell32_u32, %cell8_u32, %cell4_u32; .reg .b64 %cell32_u64, %cell8_u64, %cell4_u64;"""
        frame = str(self.frame)
        lines = "\n".join(self.lines).replace("FRAME", frame)
        shared = f".shared .align 16 .b8 areas[{size + cells}];\n" if used else ""
        local = f".local .align 16 .b8 mine[{AREA}];\n" if used else ""
        start = "\n".join(first)
        return (
            f"{HEAD}{shared}{chr(10).join(self.functions)}\n.visible .entry k(.param .u64 k_param_0, "
            f".param .u64 k_param_1, .param .u64 k_param_2)\n{{\n{declared}\n{own}\n{local}{start}\n{lines}\n"
            "ret;\n}\n"
        )

    @property
    def frame(self) -> int:
        """Bytes of trace that one iteration leaves."""
        return max(self.used, 1) * self.row


def second_operands(forms, i: int) -> list[str]:
    """Sources of a callee's form: its parameters, or the first's result where that fits, else a literal."""
    if i == 0:
        return [f"%x{n}" for n in range(len(forms[0].sources))]
    fits = width(forms[0].results[0])
    return ["%y0" if width(kind) == fits else "5" for kind in forms[1].sources]


# the check


class Mismatch(Exception):
    """A step that left what the manual does not allow."""


class Checker:
    """Walks a program as the manual has it, beside what a run left: ``trace[iteration][slot][thread]``."""

    def __init__(self, program: Program, writer: Writer, trace):
        self.program, self.writer, self.trace = program, writer, trace
        self.values = {name: list(column) for name, column in program.inputs.items()}
        self.memory = {(space, t): bytearray(AREA) for space in SPACES for t in range(program.threads)}
        self.iteration = [0] * program.threads
        self.flag = [0] * program.threads

    def run(self) -> None:
        self.walk(self.program.statements, list(range(self.program.threads)))

    def walk(self, statements, threads) -> None:
        for s in statements:
            if threads:
                getattr(self, f"_{type(s).__name__.lower()}")(s, threads)

    def left(self, s, place: int, thread: int, bits: int) -> int:
        slot = self.writer.slots[id(s)][place]
        return int(self.trace[self.iteration[thread]][slot][thread]) & mask(bits)

    def read(self, source, kind: str, thread: int) -> int:
        if isinstance(source, int):
            return source & mask(64 if kind in ("segment", "byte") or ":" in kind else width(kind))
        value = self.values[source.lstrip("!")][thread]
        value = 1 - value if source.startswith("!") else value
        return (
            value if kind in ("pred", "!pred", "segment", "byte") else value & mask(width(kind.split("@")[0]))
        )

    def judge(self, s, place: int, thread: int, allowed, kind: str, register: str, given) -> None:
        bits = Writer.bits(register)
        got = self.left(s, place, thread, bits)
        kind = kind.lstrip("!")
        if kind == "pred":
            right = manual.agrees(allowed, got, "u8")
        elif "@" in kind:
            kind = kind.split("@")[0]
            low = got & mask(width(kind))
            extended = manual.signed(low, width(kind)) & mask(bits) if kind[0] == "s" else low
            right = manual.agrees(allowed, low, kind) and got == extended
        else:
            right = manual.agrees(allowed, got, kind)
        if not right:
            shown = ", ".join(hex(x) if isinstance(x, int) else str(x) for x in given)
            want = hex(allowed & mask(bits)) if isinstance(allowed, int) else allowed
            want = "a NaN" if want is manual.NAN else want
            raise Mismatch(
                f"{describe(s)} with {shown}: {register} is {got:#x}, the manual says {want} "
                f"(thread {thread})"
            )
        self.values[register][thread] = got

    def _op(self, s: Op, threads) -> None:
        form = s.form
        given = {t: tuple(self.read(x, k, t) for x, k in zip(s.sources, form.sources)) for t in threads}
        if s.guard:
            name, negated = s.guard
            skipped = [t for t in threads if self.values[name][t] == negated]
            for t in skipped:
                for place, register in enumerate(s.results):
                    kind = "pred" if register.startswith("%p") else f"b{Writer.bits(register)}"
                    self.judge(s, place, t, self.values[register][t], kind, register, ("the guard false",))
            threads = [t for t in threads if t not in skipped]
        if form.group == "warp":
            allowed = {}
            for warp in {t // 32 for t in threads}:
                lanes = {t % 32: given[t] for t in threads if t // 32 == warp}
                allowed |= {32 * warp + lane: out for lane, out in form.meaning(lanes).items()}
        elif form.group == "carry":
            allowed = {}
            for t in threads:
                allowed[t], flag = form.meaning(self.flag[t], *given[t])
                self.flag[t] = self.flag[t] if flag is None else flag
        else:
            allowed = {t: form.meaning(*given[t]) for t in threads}
        for t in threads:
            for place, (register, kind) in enumerate(zip(s.results, form.results)):
                self.judge(s, place, t, allowed[t][place], kind, register, given[t])

    def _store(self, s: Store, threads) -> None:
        size = width(s.kind) // 8
        for t in threads:
            memory = self.memory[s.space, t]
            for i, register in enumerate(s.registers):
                at = s.offset + i * size
                if s.opcode == "st":
                    value = self.values[register][t] & mask(8 * size)
                    memory[at : at + size] = value.to_bytes(size, "little")
                else:
                    value = int.from_bytes(memory[at : at + size], "little")
                    value = manual.integer(value, s.kind) if s.kind[0] == "s" else value
                    kind = f"b{Writer.bits(register)}"
                    self.judge(s, i, t, value, kind, register, ("what was stored",))

    def _atomic(self, s: Atomic, threads) -> None:
        bits = width(s.kind)
        cells: dict[int, list[int]] = {}
        for t in threads:
            cells.setdefault(t // 32 * 32 + t % s.sharing, []).append(t)
        for members in cells.values():
            final = self.left(s, 0, members[0], bits)
            taken = {t: tuple(self.values[x][t] & mask(bits) for x in s.sources) for t in members}
            found = {t: self.left(s, 1, t, bits) for t in members} if s.opcode == "atom" else {}
            if not in_some_order(s, s.start & mask(bits), taken, found, final):
                raise Mismatch(
                    f"{describe(s)}: cell {s.start:#x}, operands {taken}, found {found}, left {final:#x}"
                )
            for t in found:
                self.values[s.result][t] = found[t]

    def _if(self, s: If, threads) -> None:
        holds = [t for t in threads if self.values[s.predicate][t]]
        self.walk(s.then, holds)
        self.walk(s.other, [t for t in threads if t not in holds])

    def _loop(self, s: Loop, threads) -> None:
        left = {t: self.values[s.counter][t] & 3 for t in threads}
        while any(left.values()):
            turn = [t for t in threads if left[t]]
            self.walk(s.body, turn)
            for t in turn:
                self.iteration[t] += 1
                left[t] -= 1
        for t in threads:
            self.iteration[t] = 0

    def _call(self, s: Call, threads) -> None:
        for t in threads:
            given = [self.values[x][t] & mask(width(k)) for x, k in zip(s.sources, s.forms[0].sources)]
            (value,) = s.forms[0].meaning(*given)
            if len(s.forms) == 2:
                bits = width(s.forms[0].results[0])
                value &= mask(bits)
                operands = [value if name == "%y0" else 5 for name in second_operands(s.forms, 1)]
                (value,) = s.forms[1].meaning(*operands)
            kind = f"b{Writer.bits(s.result)}"
            self.judge(s, 0, t, value & mask(width(s.forms[-1].results[0])), kind, s.result, given)


def in_some_order(s: Atomic, state, taken, found, final: int) -> bool:
    """Whether the lanes can have taken turns so that each found what it found and the last left ``final``."""

    def after(old: int, operands):
        compare, value = operands if s.operation == "cas" else (0, operands[0])
        if s.kind.endswith("x2"):
            return tuple(
                manual.step(s.operation, s.kind[:-2], old >> i & 0xFFFF, value >> i & 0xFFFF) for i in (0, 16)
            )
        allowed = manual.step(s.operation, s.kind, old, value, compare)
        if s.kind == "f32" and allowed is not manual.NAN:  # in global memory subnormals may be flushed
            flushed = manual.add("f32", ("ftz",), old, value)
            patterns = flushed.patterns if isinstance(flushed, manual.OneOf) else (flushed,)
            allowed = manual.OneOf((allowed, *patterns))
        return allowed

    def go(state, left: frozenset) -> bool:
        if not left:
            return manual.agrees(state, final, s.kind)
        for t in left:
            old = found.get(t, state)
            if t in found and not manual.agrees(state, old, s.kind):
                continue
            if go(after(old, taken[t]), left - {t}):
                return True
        return False

    return go(state, frozenset(taken))


def describe(s) -> str:
    match s:
        case Op():
            return f"{s.form.name} {', '.join(map(str, (*s.results, *s.sources)))}"
        case Call():
            return f"call of {' then '.join(f.name for f in s.forms)}"
        case Atomic():
            return f"{s.opcode}.{s.space}.{s.operation}.{s.kind} by {s.sharing} lanes apart"
    return str(s)
