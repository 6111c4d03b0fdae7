"""Initial values of module variables, addresses among them, as the PTX manual's section on initialisers has
them; and what kernels find there.
"""

import numpy as np
import pytest
from ptx_runner import run

from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.program import Program
from warplab.simt.errors import UnsupportedInstruction
from warplab.simt.ptx.link import link
from warplab.simt.ptx.parser import Address, PTXSyntaxError, parse

MODULE = ".version 9.0\n.target sm_90\n.address_size 64\n"


def variable(declaration):
    return parse(MODULE + declaration).variables[-1]


@pytest.mark.parametrize(
    "declaration, dtype, values",
    [
        (".global .s32 n[3][2] = {{1, 2}, {3}, {4}};", "i4", [1, 2, 3, 0, 4, 0]),  # a short row is filled
        (".global .s32 n[3][2] = {1, 2, 3};", "i4", [1, 2, 3, 0, 0, 0]),
        (".global .s32 n[][2] = {{1}, {3, 4}, {5}};", "i4", [1, 0, 3, 4, 5, 0]),  # as long as what is given
        (".global .s32 n[] = {1, 2, 3, 4, 5};", "i4", [1, 2, 3, 4, 5]),
        (".global .v4 .f32 n = {1.0, 2.5, 0f3F800000, 1e2};", "f4", [1, 2.5, 1, 100]),
        (".const .u32 n[4] = {017, 0x1F, 0b101, 9};", "u4", [15, 31, 5, 9]),  # octal, as in C
        (".const .s16 n[2] = {-1, 0};", "i2", [-1, 0]),
    ],
)
def test_values_stand_where_the_braces_put_them(declaration, dtype, values):
    v = variable(declaration)
    assert np.frombuffer(v.data, dtype).tolist() == values and v.size == len(v.data)


@pytest.mark.parametrize("value", ["5 * 4", "{1, 2, 3}", "1 ? 2 : 3"])
def test_an_initial_value_that_is_not_understood_is_an_error_and_not_zero(value):
    with pytest.raises(PTXSyntaxError):
        variable(f".global .u32 n[2] = {value};")


def test_addresses_of_an_initialiser():
    v = variable(
        ".global .u64 n[4] = {data, generic(data)+8, 7, 0xFF00(generic(data)+4)};",
    )
    assert v.addresses == (
        Address(0, 8, "data"),
        Address(8, 8, "data", 8, True),
        Address(24, 8, "data", 4, True, 8),
    )
    assert np.frombuffer(v.data, "u8").tolist() == [0, 0, 7, 0]


DATA = ".global .u32 data[4] = {10, 11, 12, 13};\n"


def loads(expression):
    """PTX that stores the word at the generic address that ``expression`` loads into %rd3."""
    return expression + "ld.u32 %r2, [%rd3]; st.global.u32 [%rd1], %r2;"


@pytest.mark.parametrize(
    "declarations, body, value",
    [
        (DATA, loads("mov.u64 %rd3, data+8;").replace("ld.u32", "ld.global.u32"), 12),
        (DATA + ".global .u64 head = data;", loads("ld.global.u64 %rd3, [head];"), 10),
        (DATA + ".global .u64 head = generic(data)+8;", loads("ld.global.u64 %rd3, [head];"), 12),
        (DATA + ".const .u64 p[2] = {data+4, generic(data)};", loads("ld.const.u64 %rd3, [p];"), 11),
        (".global .u64 head = data;\n" + DATA, loads("ld.global.u64 %rd3, [head];"), 10),  # defined behind it
        (
            ".const .u32 data[2] = {10, 11}; .global .u64 p = generic(data)+4;",
            loads("ld.global.u64 %rd3, [p];"),
            11,
        ),
        (  # two of the same name in a chain
            DATA + ".global .u64 a = generic(data)+12; .global .u64 b = generic(a);",
            loads("ld.global.u64 %rd4, [b]; ld.u64 %rd3, [%rd4];"),
            13,
        ),
    ],
)
def test_a_pointer_that_an_initialiser_sets_points_there(declarations, body, value):
    assert (run(body, functions=declarations) == value).all()


def test_the_bytes_that_a_mask_takes_make_up_the_address():
    masks = ", ".join(f"0xff{'00' * i}(data)" for i in range(8))
    body = loads("ld.global.u64 %rd3, [parts];")
    assert (run(body, functions=f"{DATA}.global .align 8 .u8 parts[8] = {{{masks}}};") == 10).all()


INC_AND_DEC = """
.func (.param .b32 func_retval0) inc(.param .b32 p0) {
    .reg .b32 %r<3>; ld.param.u32 %r1, [p0]; add.u32 %r2, %r1, 1; st.param.b32 [func_retval0], %r2; ret; }
.func (.param .b32 func_retval0) dec(.param .b32 p0) {
    .reg .b32 %r<3>; ld.param.u32 %r1, [p0]; sub.u32 %r2, %r1, 1; st.param.b32 [func_retval0], %r2; ret; }
.global .align 8 .u64 table[2] = {inc, dec};
"""


def test_each_lane_calls_the_function_that_its_entry_of_a_table_names():
    out = run(
        """and.b32 %r2, %r1, 1; mul.wide.u32 %rd3, %r2, 8; mov.u64 %rd4, table; add.s64 %rd4, %rd4, %rd3;
        ld.global.u64 %rd5, [%rd4];
        { .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 retval0;
        proto : .callprototype (.param .b32 _) _ (.param .b32 _);
        call (retval0), %rd5, (param0), proto; ld.param.b32 %r3, [retval0]; }
        st.global.u32 [%rd1], %r3;""",
        functions=INC_AND_DEC,
    )
    lanes = np.arange(32)
    np.testing.assert_array_equal(out[:, 0].view(np.int32), np.where(lanes % 2, lanes - 1, lanes + 1))


def test_an_initialiser_names_the_private_variable_of_its_own_module():
    first = parse(MODULE + ".global .u32 data = 1; .visible .global .u64 a = data;")
    second = parse(MODULE + ".global .u32 data = 2; .visible .global .u64 b = data;")
    linked = {v.name: v for v in link([first, second]).variables}
    (a,), (b,) = linked["a"].addresses, linked["b"].addresses
    assert linked[a.symbol].data == b"\1\0\0\0" and linked[b.symbol].data == b"\2\0\0\0"


def test_an_address_that_nobody_defines_is_refused_by_name():
    text = MODULE + ".global .u64 p = nowhere;\n.visible .entry k() { ret; }"
    with pytest.raises(UnsupportedInstruction, match="the address of nowhere, with which p is initialised"):
        Program(text, "k", "k", AddressSpace())


def test_a_variable_that_is_only_declared_is_refused_where_it_is_used_and_does_not_read_zero():
    with pytest.raises(UnsupportedInstruction, match="unknown symbol elsewhere"):
        run("ld.global.u32 %r2, [elsewhere];", functions=".extern .global .u32 elsewhere;")
