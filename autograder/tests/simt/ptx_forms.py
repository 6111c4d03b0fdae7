"""Every form of every instruction that the PTX manual gives and the table of instructions has: its name with
types and modifiers, the types of its operands, and its meaning (``ptx_oracle``).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ptx_oracle as manual
from ptx_oracle import integer, mask, width

INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
BITS = ("b16", "b32", "b64")
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
ROUNDED = ("", ".rn", ".rz", ".rm", ".rp")
DIRECTED = ROUNDED[1:]


@dataclass(frozen=True)
class Form:
    """``name`` as written; types of destinations and sources (``s8@32``: an s8 in a 32-bit register,
    ``!pred``: a predicate that may be negated, ``0:255``: a literal of that range); ``meaning`` of the
    sources' patterns, one allowed result a destination; ``template`` of the operands, destinations first.
    """

    name: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    meaning: Callable
    template: str = ""
    group: str = (
        "lane"  # | "warp": meaning takes what all active lanes hold | "carry": takes and gives the flag
    )
    literals: bool = True  # whether a source may be a literal

    @property
    def opcode(self) -> str:
        return self.name.split(".")[0]

    @property
    def exact(self) -> bool:
        """Whether the result is one integer, whatever the sources."""
        floats = any(k.lstrip("!").split("@")[0].removesuffix("x2") in manual.FORMATS for k in self.results)
        return self.group == "lane" and not floats and self.opcode not in ("div", "rem")


def options(*choices) -> Iterator[str]:
    """Every way to choose one modifier, or none, of each."""
    for picked in itertools.product(*choices):
        yield "".join(picked)


def of(name, result, sources, meaning, **rest) -> Form:
    return Form(name, (result,), tuple(sources), lambda *x: (meaning(*x),), **rest)


def halves(fmt: str, one: Callable) -> Callable:
    """A meaning for a packed pair from that of one value: the low half first."""
    return lambda *x: tuple(one(*(v >> 16 * i & 0xFFFF for v in x)) for i in (0, 1))


def float_form(opcode: str, fmt: str, mods: str, places: int, one: Callable) -> Form:
    """A form whose meaning is ``one(format, modifiers, operands...)``, for a value or for both of a pair."""
    base, given = fmt.removesuffix("x2"), tuple(mods.split(".")[1:])

    def meaning(*x):
        return one(base, given, *x)

    meaning_ = halves(fmt, meaning) if fmt.endswith("x2") else meaning
    return of(f"{opcode}{mods}.{fmt}", fmt, (fmt,) * places, meaning_, literals=fmt in ("f32", "f64"))


def arithmetic() -> Iterator[Form]:
    for k in INTS:
        yield of(f"add.{k}", k, (k, k), lambda a, b: a + b)
        yield of(f"sub.{k}", k, (k, k), lambda a, b: a - b)
        for m in ("lo", "hi"):
            yield of(f"mul.{m}.{k}", k, (k, k), lambda a, b, k=k, m=m: manual.multiply(k, (m,), a, b))
            yield of(
                f"mad.{m}.{k}", k, (k, k, k), lambda a, b, c, k=k, m=m: manual.multiply(k, (m,), a, b) + c
            )
        if width(k) < 64:
            wide = f"{k[0]}{2 * width(k)}"
            product = lambda a, b, k=k: manual.multiply(k, ("wide",), a, b)  # noqa: E731
            yield of(f"mul.wide.{k}", wide, (k, k), product)
            yield of(f"mad.wide.{k}", wide, (k, k, wide), lambda a, b, c, p=product: p(a, b) + c)
        yield of(f"div.{k}", k, (k, k), lambda a, b, k=k: manual.quotient(k, a, b))
        yield of(f"rem.{k}", k, (k, k), lambda a, b, k=k: manual.remainder(k, a, b))
        yield of(f"min.{k}", k, (k, k), lambda a, b, k=k: min(integer(a, k), integer(b, k)))
        yield of(f"max.{k}", k, (k, k), lambda a, b, k=k: max(integer(a, k), integer(b, k)))
        distance = lambda a, b, c, k=k: c + abs(integer(a, k) - integer(b, k))  # noqa: E731
        yield of(f"sad.{k}", k, (k, k, k), distance)
        if k[0] == "s":
            yield of(f"abs.{k}", k, (k,), lambda a, k=k: abs(integer(a, k)))
            yield of(f"neg.{k}", k, (k,), lambda a: -a)
    saturated = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y}
    for name, act in saturated.items():

        def clamped(a, b, act=act):
            return manual.clamp(act(integer(a, "s32"), integer(b, "s32")), "s32")

        yield of(f"{name}.sat.s32", "s32", ("s32", "s32"), clamped)
    yield of(
        "mad.hi.sat.s32",
        "s32",
        ("s32",) * 3,
        lambda a, b, c: manual.clamp(
            (integer(a, "s32") * integer(b, "s32") >> 32) + integer(c, "s32"), "s32"
        ),
    )
    for name, least in (("min", min), ("max", max)):
        relu = lambda a, b, f=least: max(0, f(integer(a, "s32"), integer(b, "s32")))  # noqa: E731
        yield of(f"{name}.relu.s32", "s32", ("s32", "s32"), relu)
        for k, r in (("u16x2", ""), ("s16x2", ""), ("s16x2", ".relu")):

            def one(a, b, k=k[:3], r=r, f=least):
                return max(0 if r else -(1 << 15), f(integer(a, k), integer(b, k))) & 0xFFFF

            yield of(f"{name}{r}.{k}", k, (k, k), halves(k, one), literals=False)
    for k in ("u16x2", "s16x2"):
        yield of(f"add.{k}", k, (k, k), halves(k, lambda a, b: a + b & 0xFFFF), literals=False)
    for a, b in itertools.product(("u32", "s32"), repeat=2):
        result = "s32" if "s32" in (a, b) else "u32"
        yield of(
            f"dp4a.{a}.{b}", result, (a, b, result), lambda x, y, z, a=a, b=b: manual.dot(a, b, None, x, y, z)
        )
        for h in ("lo", "hi"):
            meaning = lambda x, y, z, a=a, b=b, h=h: manual.dot(a, b, h, x, y, z)  # noqa: E731
            yield of(f"dp2a.{h}.{a}.{b}", result, (a, b, result), meaning)
    for name, parts in itertools.product(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"), (2, 4)):
        for kinds in itertools.product(("u32", "s32"), repeat=3):
            for extra in ("", ".sat", ".add"):

                def meaning(a, b, c, name=name, parts=parts, kinds=kinds, extra=extra):
                    return manual.video(name, parts, kinds, extra == ".sat", extra == ".add", a, b, c)

                full = f"{name}{parts}.{'.'.join(kinds)}{extra}"
                yield of(full, kinds[0], (*kinds[1:], kinds[0]), meaning, literals=False)


def floating() -> Iterator[Form]:
    for name, one in (("add", manual.add), ("sub", manual.sub), ("mul", manual.mul)):
        for mods in options(ROUNDED, ("", ".ftz"), ("", ".sat")):
            yield float_form(name, "f32", mods, 2, one)
        for mods in ROUNDED:
            yield float_form(name, "f64", mods, 2, one)
        for fmt in ("f16", "f16x2"):
            for mods in options(("", ".rn"), ("", ".ftz"), ("", ".sat")):
                yield float_form(name, fmt, mods, 2, one)
        for fmt in ("bf16", "bf16x2"):
            for mods in ("", ".rn"):
                yield float_form(name, fmt, mods, 2, one)
    for name in ("fma", "mad"):
        for mods in options(DIRECTED, ("", ".ftz"), ("", ".sat")):
            yield float_form(name, "f32", mods, 3, manual.fma)
        for mods in DIRECTED:
            yield float_form(name, "f64", mods, 3, manual.fma)
    for fmt in ("f16", "f16x2"):
        for mods in options((".rn",), ("", ".ftz"), ("", ".sat", ".relu")):
            yield float_form("fma", fmt, mods, 3, manual.fma)
    for fmt in ("bf16", "bf16x2"):
        for mods in (".rn", ".rn.relu"):
            yield float_form("fma", fmt, mods, 3, manual.fma)
    for mods in options((".approx", ".full", *DIRECTED), ("", ".ftz")):
        yield float_form("div", "f32", mods, 2, manual.div)
    for mods in options((".approx", *DIRECTED), ("", ".ftz")):
        yield float_form("rcp", "f32", mods, 1, manual.rcp)
        yield float_form("sqrt", "f32", mods, 1, manual.sqrt)
    for mods in DIRECTED:
        yield float_form("div", "f64", mods, 2, manual.div)
        yield float_form("rcp", "f64", mods, 1, manual.rcp)
        yield float_form("sqrt", "f64", mods, 1, manual.sqrt)
    yield float_form("rcp", "f64", ".approx.ftz", 1, manual.rcp)
    for name in ("rsqrt", "lg2", "sin", "cos", "ex2", "tanh"):

        def one(fmt, mods, a, name=name):
            return manual.transcendental(name, fmt, mods, a)

        for mods in (".approx", ".approx.ftz")[: 1 if name == "tanh" else 2]:
            yield float_form(name, "f32", mods, 1, one)
        if name == "rsqrt":
            yield float_form(name, "f64", ".approx", 1, one)
            yield float_form(name, "f64", ".approx.ftz", 1, one)
        if name in ("ex2", "tanh"):
            for fmt in HALVES:
                ftz = ".ftz" if name == "ex2" and fmt.startswith("bf16") else ""
                yield float_form(name, fmt, f".approx{ftz}", 1, one)
    for fmt in ("f32", "f64", *HALVES):
        for ftz in ("", ".ftz") if fmt in ("f32", "f16", "f16x2") else ("",):
            absolute = lambda f, m, a: manual.flushed(a, f, m) & ~manual.sign_bit(f)  # noqa: E731
            negated = lambda f, m, a: manual.flushed(a, f, m) ^ manual.sign_bit(f)  # noqa: E731
            yield float_form("abs", fmt, ftz, 1, absolute)
            yield float_form("neg", fmt, ftz, 1, negated)
        for name in ("min", "max"):

            def one(f, m, a, b, name=name):
                return manual.smaller(f, m, a, b, name == "max")

            if fmt == "f64":
                yield float_form(name, fmt, "", 2, one)
                continue
            for mods in options(
                ("", ".ftz") if not fmt.startswith("bf16") else ("",), ("", ".NaN"), ("", ".xorsign.abs")
            ):
                yield float_form(name, fmt, mods, 2, one)
    for fmt in ("f32", "f64"):
        taken = lambda f, m, a, b: a & manual.sign_bit(f) | b & ~manual.sign_bit(f)  # noqa: E731
        yield float_form("copysign", fmt, "", 2, taken)
        for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            meaning = lambda a, what=what, fmt=fmt: int(manual.test_property(what, fmt, a))  # noqa: E731
            yield of(f"testp.{what}.{fmt}", "pred", (fmt,), meaning)


def bits() -> Iterator[Form]:
    for k in ("pred", *BITS):
        for name, act in manual.LOGIC.items():
            yield of(f"{name}.{k}", k, (k, k), act, literals=k != "pred")
        yield of(f"not.{k}", k, (k,), lambda a, k=k: 1 - a if k == "pred" else ~a, literals=k != "pred")
    for k in BITS:
        yield of(f"shl.{k}", k, (k, "u32"), lambda a, b, k=k: manual.shift_left(k, a, b))
        for sign in "bus":
            kind = f"{sign}{k[1:]}"
            yield of(f"shr.{kind}", kind, (kind, "u32"), lambda a, b, k=kind: manual.shift_right(k, a, b))
    for d, m in itertools.product("lr", ("wrap", "clamp")):
        meaning = lambda a, b, c, d=d, m=m: manual.funnel(d, m, a, b, c)  # noqa: E731
        yield of(f"shf.{d}.{m}.b32", "b32", ("b32", "b32", "u32"), meaning)
    yield of("lop3.b32", "b32", ("b32", "b32", "b32", "0:255"), manual.lop3)
    for k in ("u32", "s32", "u64", "s64"):
        yield of(f"bfe.{k}", k, (k, "byte", "byte"), lambda a, b, c, k=k: manual.bfe(k, a, b, c))
        for s in ("", ".shiftamt"):
            yield of(f"bfind{s}.{k}", "u32", (k,), lambda a, k=k, s=s: manual.bfind(k, bool(s), a))
    for k in ("b32", "b64"):
        yield of(f"bfi.{k}", k, (k, k, "byte", "byte"), lambda a, b, c, d, k=k: manual.bfi(k, a, b, c, d))
        yield of(f"brev.{k}", k, (k,), lambda a, k=k: manual.brev(k, a))
        yield of(f"popc.{k}", "u32", (k,), lambda a: a.bit_count())
        yield of(f"clz.{k}", "u32", (k,), lambda a, k=k: manual.clz(k, a))
    for m in ("clamp", "wrap"):
        yield of(f"bmsk.{m}.b32", "b32", ("u32", "u32"), lambda a, b, m=m: manual.bmsk(m, a, b))
    for m in (None, "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        meaning = lambda a, b, c, m=m: manual.prmt(m, a, b, c)  # noqa: E731
        yield of(f"prmt.b32{f'.{m}' if m else ''}", "b32", ("b32", "b32", "b32"), meaning)


ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
FLOAT_ORDERS = (*ORDERED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def comparisons() -> Iterator[Form]:
    compared = {k: ("eq", "ne") for k in BITS}
    compared |= {k: (*ORDERED, "lo", "ls", "hi", "hs") if k[0] == "u" else ORDERED for k in INTS}
    compared |= {fmt: FLOAT_ORDERS for fmt in ("f32", "f64", *HALVES)}
    for k, operators in compared.items():
        for op in operators:
            for ftz in ("", ".ftz") if k in ("f32", "f16", "f16x2") else ("",):
                base, literals = k.removesuffix("x2"), k not in HALVES

                def test(a, b, base=base, op=op, ftz=ftz):
                    return int(manual.compare(op, base, (ftz[1:],), a, b))

                if k.endswith("x2"):

                    def both(a, b, test=test):
                        return tuple(test(a >> i & 0xFFFF, b >> i & 0xFFFF) for i in (0, 16))

                    yield Form(
                        f"setp.{op}{ftz}.{k}",
                        ("pred", "pred"),
                        (k, k),
                        both,
                        "{0}|{1}, {2}, {3}",
                        literals=False,
                    )
                    for to, true in (("u32", 0xFFFF), (k, manual.rounded(manual.Fraction(1), base))):

                        def each(a, b, both=both, true=true):
                            return true * both(a, b)[0] | (true * both(a, b)[1]) << 16

                        yield of(f"set.{op}{ftz}.{to}.{k}", to, (k, k), each, literals=False)
                    continue
                yield of(f"setp.{op}{ftz}.{k}", "pred", (k, k), test, literals=literals)
                for logic, act in manual.LOGIC.items():

                    def combined(a, b, c, test=test, act=act):
                        return act(test(a, b), c), act(1 - test(a, b), c)

                    name, sources = f"setp.{op}.{logic}{ftz}.{k}", (k, k, "!pred")
                    if k in HALVES:  # these have no second predicate
                        yield of(name, "pred", sources, lambda *x, both=combined: both(*x)[0], literals=False)
                        continue
                    template = "{0}|{1}, {2}, {3}, {4}"
                    yield Form(name, ("pred", "pred"), sources, combined, template, literals=literals)
                targets = {"u32": mask(32), "s32": mask(32), "f32": 0x3F800000}
                if k in ("f16", "bf16"):
                    targets = {"u16": 0xFFFF, "u32": mask(32), k: manual.rounded(manual.Fraction(1), k)}
                for to, true in targets.items():
                    yield of(
                        f"set.{op}{ftz}.{to}.{k}",
                        to,
                        (k, k),
                        lambda a, b, t=test, v=true: v * t(a, b),
                        literals=literals,
                    )
                    for logic, act in manual.LOGIC.items():
                        meaning = lambda a, b, c, t=test, v=true, act=act: v * act(t(a, b), c)  # noqa: E731
                        yield of(
                            f"set.{op}.{logic}{ftz}.{to}.{k}", to, (k, k, "!pred"), meaning, literals=literals
                        )
    for k in (*BITS, *INTS, "f32", "f64"):
        yield of(
            f"selp.{k}",
            f"b{width(k)}",
            (f"b{width(k)}",) * 2 + ("pred",),
            lambda a, b, p: a if p else b,
            literals=False,
        )


def conversions() -> Iterator[Form]:
    whole = ("rni", "rzi", "rmi", "rpi")
    eight = ("u8", "s8")

    def cvt(mods, to, source, to_kind=None, source_kind=None):
        given = tuple(mods.split(".")[1:])

        def meaning(a):
            a &= mask(width(source))
            return manual.convert(to, source, given, a)

        return of(
            f"cvt{mods}.{to}.{source}", to_kind or to, (source_kind or source,), meaning, literals=False
        )

    def held(kind):
        return f"{kind}@32" if kind in eight else kind

    for to, source in itertools.product((*INTS, *eight), repeat=2):
        yield cvt("", to, source, held(to), held(source))
        (low, high), (least, most) = manual.bounds(to), manual.bounds(source)
        if least < low or most > high:
            yield cvt(".sat", to, source, held(to), held(source))
    for to, source in itertools.product(("u16", "s16"), INTS[2:]):  # in a wider register
        yield cvt("", to, source, f"{to}@32")
    for source in ("f16", "bf16", "f32", "f64"):
        for to, m in itertools.product(INTS if source == "bf16" else (*INTS, *eight), whole):
            for mods in options(
                (f".{m}",),
                ("", ".ftz") if source == "f32" else ("",),
                ("", ".sat") if source != "bf16" else ("",),
            ):
                yield cvt(mods, to, source, held(to))
    for to in ("f16", "bf16", "f32", "f64"):
        for source, m in itertools.product(INTS if to == "bf16" else (*INTS, *eight), DIRECTED):
            for sat in ("", ".sat") if to != "bf16" else ("",):
                yield cvt(m + sat, to, source, None, held(source))
    for sat in ("", ".sat"):
        yield cvt(sat, "f64", "f32")
        yield cvt(f".ftz{sat}", "f64", "f32")
        yield cvt(sat, "f64", "f16")
        yield cvt(sat, "f32", "f16")
        yield cvt(f".ftz{sat}", "f32", "f16")
        for m in DIRECTED:
            yield cvt(m + sat, "f32", "f64")
            yield cvt(f"{m}.ftz{sat}", "f32", "f64")
            yield cvt(m + sat, "f16", "f64")
            yield cvt(m + sat, "f16", "f32")
            yield cvt(f"{m}.ftz{sat}", "f16", "f32")
        for fmt in ("f16", "f32", "f64"):
            for m in whole:
                yield cvt(f".{m}{sat}", fmt, fmt)
        for m in whole:
            yield cvt(f".{m}.ftz{sat}", "f32", "f32")
    yield cvt(".rm", "f16", "f32", "f16@32")  # in wider registers
    yield cvt(".rm", "f32", "s32", "f32@64")
    yield cvt("", "f32", "bf16")
    yield cvt("", "f64", "bf16")
    yield cvt(".ftz", "f32", "bf16")
    yield cvt(".rn.ftz", "bf16", "f32")
    yield cvt(".rz.ftz", "bf16", "f32")
    for m in DIRECTED:
        yield cvt(m, "f32", "bf16")
        yield cvt(m, "bf16", "f64")
        yield cvt(m, "bf16", "f16")
    for m in whole:
        yield cvt(f".{m}", "bf16", "bf16")
    for to in ("f16", "bf16"):
        for m, relu in itertools.product((".rn", ".rz"), ("", ".relu")):
            for finite in ("", ".satfinite"):
                if relu or finite or to == "bf16":
                    yield cvt(m + relu + finite, to, "f32")
            for finite in ("", ".satfinite"):

                def pair(a, b, to=to, given=(m[1:], relu[1:], finite[1:])):
                    return tuple(manual.convert(to, "f32", given, x) for x in (b, a))

                name = f"cvt{m}{relu}{finite}.{to}x2.f32"
                yield of(name, f"{to}x2", ("f32", "f32"), pair, literals=False)
    for kind, relu in itertools.product(("e4m3", "e5m2"), ("", ".relu")):

        def packed(a, b, kind=kind, r=relu):
            return manual.to_fp8(kind, "f32", (r[1:],), a) << 8 | manual.to_fp8(kind, "f32", (r[1:],), b)

        yield of(f"cvt.rn.satfinite{relu}.{kind}x2.f32", "b16", ("f32", "f32"), packed, literals=False)

        def repacked(a, kind=kind, r=relu):
            return sum(manual.to_fp8(kind, "f16", (r[1:],), a >> 16 * i & 0xFFFF) << 8 * i for i in (0, 1))

        yield of(f"cvt.rn.satfinite{relu}.{kind}x2.f16x2", "b16", ("b32",), repacked, literals=False)

        def unpacked(a, kind=kind, r=relu):
            return tuple(
                manual.finish(manual.from_fp8(kind, a >> 8 * i & 0xFF), "f16", (r[1:],)) for i in (0, 1)
            )

        yield of(f"cvt.rn{relu}.f16x2.{kind}x2", "f16x2", ("b16",), unpacked, literals=False)
    for m, relu in itertools.product((".rna", ".rn", ".rz"), ("", ".relu")):
        if (m, relu) != (".rna", ".relu"):
            g = (m[1:], relu[1:])
            yield of(
                f"cvt{m}{relu}.tf32.f32",
                "tf32",
                ("f32",),
                lambda a, g=g: manual.to_tf32(g, a),
                literals=False,
            )


def moves() -> Iterator[Form]:
    for k in (*BITS, *INTS, "f32", "f64"):
        yield of(f"mov.{k}", k, (k,), lambda a: a)
    yield of("mov.pred", "pred", ("pred",), lambda a: a, literals=False)
    for k, part in (("b32", "b16"), ("b64", "b32"), ("b64", "b16")):
        n = width(k) // width(part)
        items = ", ".join(f"{{{i}}}" for i in range(1, n + 1))
        wide = width(part)
        join = lambda *x, w=wide: sum(v << w * i for i, v in enumerate(x))  # noqa: E731
        yield of(f"mov.{k}", k, (part,) * n, join, template=f"{{0}}, {{{{{items}}}}}", literals=False)
        items = ", ".join(f"{{{i}}}" for i in range(n))
        split = lambda a, w=wide, n=n: tuple(a >> w * i & mask(w) for i in range(n))  # noqa: E731
        yield Form(f"mov.{k}", (part,) * n, (k,), split, f"{{{{{items}}}}}, {{{n}}}", literals=False)


def carries() -> Iterator[Form]:
    """``meaning(flag, operands)`` gives the result and the flag."""

    def carry(name, places, whole):
        def meaning(flag, *x):
            total = whole(flag, *x)
            return (total & mask(32),), total >> 32 & 1 if ".cc" in name else None

        kind = name.rsplit(".", 1)[1]
        return Form(name, (kind,), (kind,) * places, meaning, group="carry")

    for k in ("u32", "s32"):
        for cc in (".cc", ""):
            if cc:
                yield carry(f"add.cc.{k}", 2, lambda f, a, b: a + b)
                yield carry(f"sub.cc.{k}", 2, lambda f, a, b: a - b)
            yield carry(f"addc{cc}.{k}", 2, lambda f, a, b: a + b + f)
            yield carry(f"subc{cc}.{k}", 2, lambda f, a, b: a - b - f)
            for part in ("lo", "hi"):
                half = lambda a, b, k=k, p=part: manual.multiply(k, (p,), a, b) & mask(32)  # noqa: E731
                if cc:
                    yield carry(f"mad.{part}.cc.{k}", 3, lambda f, a, b, c, h=half: h(a, b) + c)
                yield carry(f"madc.{part}{cc}.{k}", 3, lambda f, a, b, c, h=half: h(a, b) + c + f)


def warps() -> Iterator[Form]:
    """``meaning(lanes)``, lanes being lane number -> the patterns of its sources, gives lane -> results."""

    def shuffled(mode):
        def meaning(lanes):
            out = {}
            for lane, (value, b, c) in lanes.items():
                source, inside = manual.shuffle(mode, lane, b, c)
                out[lane] = (lanes[source][0] if source in lanes else manual.ANYTHING, int(inside))
            return out

        return meaning

    for mode in ("up", "down", "bfly", "idx"):
        template = "{0}|{1}, {2}, {3}, {4}, %members"
        yield Form(
            f"shfl.sync.{mode}.b32",
            ("b32", "pred"),
            ("b32", "b32", "segment"),
            shuffled(mode),
            template,
            "warp",
        )

    def voted(act):
        return lambda lanes: dict.fromkeys(lanes, (act(lanes),))

    for mode, act in {
        "all": lambda lanes: int(all(x for (x,) in lanes.values())),
        "any": lambda lanes: int(any(x for (x,) in lanes.values())),
        "uni": lambda lanes: int(len({x for (x,) in lanes.values()}) == 1),
        "ballot": lambda lanes: sum(x << lane for lane, (x,) in lanes.items()),
    }.items():
        kind = "b32" if mode == "ballot" else "pred"
        yield Form(f"vote.sync.{mode}.{kind}", (kind,), ("!pred",), voted(act), "{0}, {1}, %members", "warp")
    for k in ("b32", "b64"):

        def matched(lanes):
            return {i: (sum(1 << j for j in lanes if lanes[j] == lanes[i]),) for i in lanes}

        def all_matched(lanes):
            same = len(set(lanes.values())) == 1
            return dict.fromkeys(lanes, (sum(1 << j for j in lanes) if same else 0, int(same)))

        yield Form(f"match.any.sync.{k}", ("b32",), (k,), matched, "{0}, {1}, %members", "warp")
        yield Form(
            f"match.all.sync.{k}", ("b32", "pred"), (k,), all_matched, "{0}|{1}, {2}, %members", "warp"
        )
    for k in ("u32", "s32"):
        for name, act in (("add", sum), ("min", min), ("max", max)):
            meaning = voted(lambda lanes, k=k, act=act: act([integer(x, k) for (x,) in lanes.values()]))
            yield Form(f"redux.sync.{name}.{k}", (k,), (k,), meaning, "{0}, {1}, %members", "warp")
    for name, act in manual.LOGIC.items():

        def folded(lanes, act=act):
            return dict.fromkeys(lanes, (functools.reduce(act, (x for (x,) in lanes.values())),))

        yield Form(f"redux.sync.{name}.b32", ("b32",), ("b32",), folded, "{0}, {1}, %members", "warp")
    active = voted(lambda lanes: sum(1 << lane for lane in lanes))
    yield Form("activemask.b32", ("b32",), (), active, "{0}", "warp")

    def elected(lanes):
        return {lane: (min(lanes), int(lane == min(lanes))) for lane in lanes}

    yield Form("elect.sync", ("b32", "pred"), (), elected, "{0}|{1}, %members", "warp")


FAMILIES = (arithmetic, floating, bits, comparisons, conversions, moves, carries, warps)
FORMS: tuple[Form, ...] = tuple(form for family in FAMILIES for form in family())
