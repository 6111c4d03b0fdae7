"""The memory instructions of the engine's table, in the forms in which each can stand for a load or a store.

``LOADS`` and ``STORES`` rewrite the plain accesses in the PTX of a kernel. ``test_counted_memory.py`` holds
them to the table, and has in ``FORMS`` what a warp's access counts.
"""

import re
from dataclasses import dataclass, replace

OPERAND = r"[^,;{}\n]+"
ACCESS = re.compile(
    r"^\s*(?P<guard>@!?%\w+\s+)?(?P<opcode>ld|st)\.(?P<mods>[\w.:]+)\s+"
    rf"(?P<first>{OPERAND}),\s*(?P<second>{OPERAND});",
    re.MULTILINE,
)
ADDRESS = re.compile(r"\[\s*(?P<base>[%$\w]+)\s*(?:\+\s*(?P<offset>-?\d+))?\s*\]")
BODY = re.compile(r"^\{$", re.MULTILINE)
MODULE = re.compile(r"^\.address_size.*$", re.MULTILINE)
REGISTERS = """
.reg .b16 %zzh<4>; .reg .b32 %zzr<8>; .reg .b64 %zzd<8>; .reg .pred %zzp<3>;
.local .align 16 .b8 zzlocal[16];
"""
SLOTS = ".shared .align 16 .b8 zzshared[16384];"  # 16 bytes for each of up to 1,024 threads


@dataclass(frozen=True)
class Access:
    """A plain load or store of one number: what stands in its place is written from this.

    register: its destination, or what it stores. width: bits. number: of the access in its module.
    """

    space: str
    register: str
    base: str
    offset: int
    width: int
    number: int

    @property
    def address(self):
        """Instructions that put the address, in its space, into %zzd0."""
        if self.base.startswith("%r") and not self.base.startswith("%rd"):
            return f"cvt.u64.u32 %zzd0, {self.base}; add.s64 %zzd0, %zzd0, {self.offset};"
        return f"mov.u64 %zzd0, {self.base}; add.s64 %zzd0, %zzd0, {self.offset};"

    @property
    def generic(self):
        """The same with the generic address."""
        return f"{self.address} cvta.{self.space}.u64 %zzd0, %zzd0;"

    @property
    def spare(self):
        """A register of the access's width that no kernel knows."""
        return {16: "%zzh0", 32: "%zzr0", 64: "%zzd1"}[self.width]


def rewritten(ptx, spaces, load=None, store=None):
    """(module, how many accesses were rewritten) with plain loads and stores in `spaces` made otherwise.

    load, store: Access -> PTX, or None where the instruction has no form of that width.
    """
    done = 0

    def other(match):
        nonlocal done
        mods = match["mods"].split(".")
        space = next((mod for mod in mods if mod in ("global", "shared")), None)
        loads = match["opcode"] == "ld"
        rewrite = load if loads else store
        register, address = (match["first"], match["second"]) if loads else (match["second"], match["first"])
        place = ADDRESS.fullmatch(address.strip())
        if rewrite is None or space not in spaces or match["guard"] or not place:
            return match[0]
        width = int(re.sub(r"\D", "", mods[-1]))
        access = Access(space, register.strip(), place["base"], int(place["offset"] or 0), width, done)
        text = rewrite(access) if width in (16, 32, 64) else None
        if text is None:
            return match[0]
        done += 1
        return text

    out = ACCESS.sub(other, ptx)
    if done:
        out = BODY.sub(lambda match: match[0] + REGISTERS, out)
        out = MODULE.sub(lambda match: f"{match[0]}\n{SLOTS}", out, count=1)
    return out, done


def with_other_accesses(order, spaces, load=None, store=None):
    """(order, how many accesses were rewritten) of an Order, in all modules of all its kernels."""
    kernels, total = [], 0
    for kernel in order.kernels:
        modules = [rewritten(module, spaces, load, store) for module in kernel.modules]
        kernels.append(replace(kernel, modules=tuple(text for text, _ in modules)))
        total += sum(done for _, done in modules)
    return replace(order, kernels=tuple(kernels)), total


def as_load(mods):
    """A load with other modifiers; {space} and {width} are the access's."""
    return lambda a: (
        f"{a.address} ld.{mods.format(space=a.space)}.b{a.width} {a.spare}, [%zzd0]; "
        f"mov.b{a.width} {a.register}, {a.spare};"
    )


def global_only(rewrite):
    """A form that is for global memory."""
    return lambda a: rewrite(a) if a.space == "global" else None


def atomic_load(operation, *operands, generic=False):
    """An atomic that changes nothing and returns what is there."""

    def rewrite(a):
        if a.width == 16:
            return half_by_atomic(a)
        address, space = (a.generic, "") if generic else (a.address, f"{a.space}.")
        return (
            f"{address} atom.{space}{operation}{a.width} {a.spare}, [%zzd0], {', '.join(operands)}; "
            f"mov.b{a.width} {a.register}, {a.spare};"
        )

    return rewrite


def half_by_atomic(a):
    """A number of 16 bits out of the word that an atomic returns."""
    return (
        f"{a.address} and.b64 %zzd2, %zzd0, -4; atom.{a.space}.or.b32 %zzr0, [%zzd2], 0; "
        "cvt.u32.u64 %zzr1, %zzd0; and.b32 %zzr1, %zzr1, 2; shl.b32 %zzr1, %zzr1, 3; "
        f"shr.u32 %zzr0, %zzr0, %zzr1; cvt.u16.u32 {a.register}, %zzr0;"
    )


def generic_load(a):
    return f"{a.generic} ld.b{a.width} {a.spare}, [%zzd0]; mov.b{a.width} {a.register}, {a.spare};"


def first_from_local(a):
    """One load instruction that reads local memory first, and then what it is there for."""
    return (
        f"mov.u64 %zzd2, zzlocal; st.local.b64 [%zzd2], 0; cvta.local.u64 %zzd2, %zzd2; {a.generic} "
        f"$zzload{a.number}: ld.b{a.width} {a.spare}, [%zzd2]; setp.eq.u64 %zzp0, %zzd2, %zzd0; "
        f"mov.u64 %zzd2, %zzd0; @!%zzp0 bra $zzload{a.number}; mov.b{a.width} {a.register}, {a.spare};"
    )


def first_to_local(a):
    """One store instruction that writes local memory first, and then what it is there for."""
    return (
        f"mov.u64 %zzd2, zzlocal; cvta.local.u64 %zzd2, %zzd2; {a.generic} "
        f"mov.b{a.width} {a.spare}, {a.register}; "
        f"$zzstore{a.number}: st.b{a.width} [%zzd2], {a.spare}; setp.eq.u64 %zzp0, %zzd2, %zzd0; "
        f"mov.u64 %zzd2, %zzd0; @!%zzp0 bra $zzstore{a.number};"
    )


def pair(a):
    """The aligned pair of words in which the word lies, of which one is taken."""
    if a.width != 32:
        return None
    return (
        f"{a.address} and.b64 %zzd2, %zzd0, -8; ld.{a.space}.v2.b32 {{%zzr0, %zzr1}}, [%zzd2]; "
        f"setp.eq.u64 %zzp0, %zzd0, %zzd2; selp.b32 %zzr0, %zzr0, %zzr1, %zzp0; mov.b32 {a.register}, %zzr0;"
    )


def quad(a):
    """The aligned four words in which the word lies."""
    if a.width != 32:
        return None
    return (
        f"{a.address} and.b64 %zzd2, %zzd0, -16; "
        f"ld.{a.space}.v4.b32 {{%zzr0, %zzr1, %zzr2, %zzr3}}, [%zzd2]; "
        "and.b64 %zzd3, %zzd0, 8; setp.eq.u64 %zzp0, %zzd3, 0; "
        "selp.b32 %zzr0, %zzr0, %zzr2, %zzp0; selp.b32 %zzr1, %zzr1, %zzr3, %zzp0; "
        "and.b64 %zzd3, %zzd0, 4; setp.eq.u64 %zzp0, %zzd3, 0; selp.b32 %zzr0, %zzr0, %zzr1, %zzp0; "
        f"mov.b32 {a.register}, %zzr0;"
    )


def asynchronous(a):
    """A copy to the thread's own slot of shared memory, waited for and read from there."""
    if a.width == 16:
        return None
    return (
        f"{a.address} mov.u32 %zzr1, %tid.z; mov.u32 %zzr2, %ntid.y; mov.u32 %zzr3, %tid.y; "
        "mad.lo.u32 %zzr1, %zzr1, %zzr2, %zzr3; mov.u32 %zzr2, %ntid.x; mov.u32 %zzr3, %tid.x; "
        "mad.lo.u32 %zzr1, %zzr1, %zzr2, %zzr3; mul.wide.u32 %zzd2, %zzr1, 16; mov.u64 %zzd3, zzshared; "
        f"add.s64 %zzd2, %zzd2, %zzd3; cp.async.ca.shared.global [%zzd2], [%zzd0], {a.width // 8}; "
        f"cp.async.wait_all; ld.shared.b{a.width} {a.spare}, [%zzd2]; mov.b{a.width} {a.register}, {a.spare};"
    )


def as_store(mods):
    return lambda a: (
        f"{a.address} mov.b{a.width} {a.spare}, {a.register}; "
        f"st.{mods.format(space=a.space)}.b{a.width} [%zzd0], {a.spare};"
    )


def generic_store(a):
    return f"{a.generic} mov.b{a.width} {a.spare}, {a.register}; st.b{a.width} [%zzd0], {a.spare};"


def exchange(generic=False):
    """An atomic that writes, whatever is there."""

    def rewrite(a):
        if a.width == 16:
            return None
        address, space = (a.generic, "") if generic else (a.address, f"{a.space}.")
        return (
            f"{address} mov.b{a.width} {a.spare}, {a.register}; "
            f"atom.{space}exch.b{a.width} {'%zzr7' if a.width == 32 else '%zzd7'}, [%zzd0], {a.spare};"
        )

    return rewrite


def reductions(a):
    """All bits cleared and the wanted ones set, with nothing returned."""
    if a.width == 16:
        return None
    return (
        f"{a.address} mov.b{a.width} {a.spare}, {a.register}; red.{a.space}.and.b{a.width} [%zzd0], 0; "
        f"red.{a.space}.or.b{a.width} [%zzd0], {a.spare};"
    )


LOADS = {  # opcode -> {form: how it stands for a plain load}
    "ld": {
        "volatile": as_load("volatile.{space}"),
        "relaxed": as_load("relaxed.gpu.{space}"),
        "acquire": as_load("acquire.gpu.{space}"),
        "not coherent": global_only(as_load("global.nc")),
        "cached nowhere": global_only(as_load("global.cv")),
        "constant": global_only(as_load("const")),
        "generic": generic_load,
        "local memory first": first_from_local,
        "pair": pair,
        "quad": quad,
    },
    "ldu": {"uniform": global_only(lambda a: as_load("global")(a).replace("ld.global", "ldu.global"))},
    "atom": {
        "or": atomic_load("or.b", "0"),
        "and": atomic_load("and.b", "-1"),
        "add": atomic_load("add.u", "0"),
        "max": atomic_load("max.u", "0"),
        "cas": atomic_load("cas.b", "0", "0"),
        "generic": atomic_load("or.b", "0", generic=True),
    },
    "cp": {"async": global_only(asynchronous)},
}
STORES = {  # opcode -> {form: how it stands for a plain store}
    "st": {
        "volatile": as_store("volatile.{space}"),
        "relaxed": as_store("relaxed.gpu.{space}"),
        "release": as_store("release.gpu.{space}"),
        "written through": global_only(as_store("global.wt")),
        "generic": generic_store,
        "local memory first": first_to_local,
    },
    "atom": {"exch": exchange(), "generic": exchange(generic=True)},
    "red": {"and, or": reductions},
}
