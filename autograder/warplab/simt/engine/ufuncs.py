"""NumPy ufuncs that NumPy does not have: fused multiply-add, ``.ftz``, ``min``, ``max`` and the division of
integers as in C.

LLVM (llvmlite, which numba requires) compiles their loops at the first use in a process, without optimising:
the loops are vectorised already, and optimising takes longer than most kernels run.
"""

from __future__ import annotations

import ctypes
import functools

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np
from numpy._core import _multiarray_umath  # pyright: ignore[reportAttributeAccessIssue] - no stub in NumPy

STEP = 128  # bytes of each array in one iteration, enough to make the loop's overhead small
INDEX, BYTE, POINTER = ir.IntType(64), ir.IntType(8), ir.PointerType()
FLOATS = {"f": ir.FloatType(), "d": ir.DoubleType()}  # by NumPy's type character
_kept: list = []  # objects that ufuncs point to without owning them


def _intrinsic(name: str):
    """An emitter of LLVM's intrinsic of that name, for a float or a vector of floats."""

    def emit(builder, *sources):
        kind = sources[0].type
        lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
        full = f"llvm.{name}.{lanes}{'f32' if _element(kind) == FLOATS['f'] else 'f64'}"
        signature = ir.FunctionType(kind, [kind] * len(sources))
        found = builder.module.globals.get(full) or ir.Function(builder.module, signature, full)
        return builder.call(found, sources)

    return emit


def _flush(builder, x):
    """Emit ``x``, with subnormals replaced by zeros of their sign."""
    least = float(np.finfo("f4" if _element(x.type) == FLOATS["f"] else "f8").smallest_normal)
    many = isinstance(x.type, ir.VectorType)
    bound = ir.Constant(x.type, [least] * x.type.count if many else least)
    zero = _intrinsic("copysign")(builder, ir.Constant(x.type, None), x)
    return builder.select(builder.fcmp_ordered("<", _intrinsic("fabs")(builder, x), bound), zero, x)


def _element(kind):
    return kind.element if isinstance(kind, ir.VectorType) else kind


def _all(kind, value: int):
    """An integer constant of a type; of a vector, in each element."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _division(remains: bool, signed: bool):
    """An emitter of integer division that truncates towards zero (all ones for a division by 0), or of its
    remainder (the dividend for a division by 0). The smallest number divided by -1, a trap on x86, wraps.
    """

    def emit(builder, a, b):
        zero, minus = _all(a.type, 0), _all(a.type, -1)
        none = builder.icmp_unsigned("==", b, zero)
        turns = builder.icmp_unsigned("==", b, minus) if signed else none
        safe = builder.select(builder.or_(none, turns), _all(a.type, 1), b)
        if remains:  # the remainder is 0 for divisors 1 and -1
            left = (builder.srem if signed else builder.urem)(a, safe)
            return builder.select(none, a, left)
        quotient = (builder.sdiv if signed else builder.udiv)(a, safe)
        if signed:
            quotient = builder.select(turns, builder.sub(zero, a), quotient)
        return builder.select(none, minus, quotient)

    return emit


FUNCTIONS = {  # name: (number of sources, emitter of the result)
    "fma": (3, _intrinsic("fma")),
    "flush": (1, _flush),
    # -0 is less than +0; of a number and NaN the result is the number
    "least": (2, _intrinsic("minimumnum")),
    "greatest": (2, _intrinsic("maximumnum")),
    # the result is NaN if an operand is
    "least_or_nan": (2, _intrinsic("minimum")),
    "greatest_or_nan": (2, _intrinsic("maximum")),
    # of integers
    "quotient": (2, _division(remains=False, signed=True)),
    "remainder": (2, _division(remains=True, signed=True)),
    "unsigned_quotient": (2, _division(remains=False, signed=False)),
    "unsigned_remainder": (2, _division(remains=True, signed=False)),
}


@functools.cache
def ufunc(name: str, letter: str) -> np.ufunc:
    """The ufunc of a function in ``FUNCTIONS`` for a type character of NumPy, such as "f" (float32)."""
    count, _ = FUNCTIONS[name]
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_loop(name, letter)), _target_machine())
    engine.finalize_object()
    loops = (ctypes.c_void_p * 1)(engine.get_function_address(name))
    data = (ctypes.c_void_p * 1)()
    types = (ctypes.c_char * (count + 1))(*[np.dtype(letter).num] * (count + 1))
    called = ctypes.create_string_buffer(name.encode())
    _kept.append((engine, loops, data, types, called))
    where = (ctypes.addressof(array) for array in (loops, data, types))
    return _from_loop()(*where, 1, count, 1, -1, ctypes.addressof(called), None, 0)


@functools.cache
def _from_loop():
    """PyUFunc_FromFuncAndData of NumPy's C API (https://numpy.org/doc/stable/reference/c-api/ufunc.html), the
    second entry of the table that extension modules import.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(_multiarray_umath._UFUNC_API, None)
    table = ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))
    arguments = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 4 + [ctypes.c_void_p] * 2 + [ctypes.c_int]
    return ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)(table[1])


def _target_machine():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=0)


def _in_all_lanes(build: ir.IRBuilder, pointer, vector: ir.VectorType, width: int):
    """A vector on the stack, with the element at ``pointer`` in every lane."""
    nothing, zero = ir.Constant(vector, ir.Undefined), ir.IntType(32)(0)
    first = build.insert_element(nothing, build.load(pointer, typ=vector.element, align=width), zero)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    on_stack = build.alloca(vector)
    build.store(build.shuffle_vector(first, nothing, lanes), on_stack, align=width)
    return on_stack


def _loop(name: str, letter: str) -> str:
    """LLVM IR of NumPy's inner loop ``name(arrays, &count, &steps, data)``; the last array is the result's.

    If every source is contiguous or has step 0 (one value for all lanes, repeated in a vector on the stack),
    it first computes whole vectors; the rest is computed element by element.
    """
    sources, compute = FUNCTIONS[name]
    width = np.dtype(letter).itemsize
    kind = FLOATS.get(letter) or ir.IntType(8 * width)
    lanes = STEP // width
    vector = ir.VectorType(kind, lanes)
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER] * 4), name)
    arrays, counts, steps, _ = function.args
    entry, whole, rest, single, end = (
        function.append_basic_block(label) for label in ("entry", "whole", "rest", "single", "end")
    )
    build = ir.IRBuilder(entry)

    def entries(pointer, of):
        slots = (build.gep(pointer, [INDEX(i)], source_etype=of) for i in range(sources + 1))
        return [build.load(slot, typ=of) for slot in slots]

    count, array, step = build.load(counts, typ=INDEX), entries(arrays, POINTER), entries(steps, INDEX)
    in_vectors = build.icmp_signed("==", step[-1], INDEX(width))
    starts = []
    for start, stride in zip(array[:-1], step[:-1]):
        same = build.icmp_signed("==", stride, INDEX(0))
        dense = build.icmp_signed("==", stride, INDEX(width))
        in_vectors = build.and_(in_vectors, build.or_(same, dense))
        starts.append(build.select(same, _in_all_lanes(build, start, vector, width), start))
    limit = build.select(in_vectors, build.and_(count, INDEX(-lanes)), INDEX(0))
    entry = build.block
    build.cbranch(build.icmp_signed(">", limit, INDEX(0)), whole, rest)

    def turn(block, starts, strides, typ, first, limit, by, came_from):
        """Emit a loop over the elements from ``first`` to ``limit``; returns the condition to repeat it."""
        build.position_at_end(block)
        i = build.phi(INDEX)
        i.add_incoming(first, came_from)
        at = [build.gep(p, [build.mul(i, s)], source_etype=BYTE) for p, s in zip(starts, strides)]
        result = compute(build, *(build.load(p, typ=typ, align=width) for p in at))
        build.store(result, build.gep(array[-1], [build.mul(i, step[-1])], source_etype=BYTE), align=width)
        following = build.add(i, INDEX(by))
        i.add_incoming(following, block)
        return build.icmp_signed("<", following, limit)

    more = turn(whole, starts, step[:-1], vector, INDEX(0), limit, lanes, entry)
    build.cbranch(more, whole, rest)
    build.position_at_end(rest)
    done = build.phi(INDEX)
    done.add_incoming(limit, whole)
    done.add_incoming(INDEX(0), entry)
    build.cbranch(build.icmp_signed("<", done, count), single, end)
    more = turn(single, array[:-1], step[:-1], kind, done, count, 1, rest)
    build.cbranch(more, single, end)
    build.position_at_end(end)
    build.ret_void()
    return str(module)
