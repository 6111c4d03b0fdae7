"""Runs PTX written by hand: a body between a prologue and ``ret``,
one 32-bit word or more of output a thread.
"""

import numpy as np

from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.sanitizer.uninitialised import InitialisationCheck

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def run(body, regs="", functions="", threads=32, words=1):
    """Run ``body`` with %r1 = lane and %rd1 = &out[lane * words]; returns out as uint32 (threads, words)."""
    space = AddressSpace()
    ptx = f"""{HEAD}{functions}
    .visible .entry k(.param .u64 k_param_0)
    {{
        .reg .pred %p<9>; .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<20>;
        .reg .f64 %fd<9>; .reg .b16 %rs<9>; {regs}
        ld.param.u64 %rd1, [k_param_0];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, {4 * words};
        add.s64 %rd1, %rd1, %rd2;
        {body}
        ret;
    }}"""
    out = np.zeros((threads, words), np.uint32)
    program = Program(ptx, "k", "k", space)
    region = space.add(out.reshape(-1).view(np.uint8), "out", 4)
    params = {"k_param_0": region.base.to_bytes(8, "little")}
    Machine(program, space, Launch((1, 1, 1), (threads, 1, 1), 0, params), [InitialisationCheck()]).run()
    return out


LANE = np.arange(32, dtype=np.uint32)

SQUARE = """
.func (.param .b32 func_retval0) square(.param .b32 square_param_0)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [square_param_0];
    mul.lo.s32 %r2, %r1, %r1;
    st.param.b32 [func_retval0+0], %r2;
    ret;
}
"""


def call(name, argument, result):
    return f"""{{
        .param .b32 param0;
        st.param.b32 [param0+0], {argument};
        .param .b32 retval0;
        call.uni (retval0), {name}, (param0);
        ld.param.b32 {result}, [retval0+0];
    }}"""
