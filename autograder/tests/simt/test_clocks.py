"""The engine has no clock: who reads one is refused, unless it only says how long to sleep."""

import numpy as np
import pytest

import warplab

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred p, q;
    .reg .b32 %n, %m, %s;
    .reg .b64 %out, %a, %b, %c;
    ld.param.u64 %out, [out];
    mov.u32 %n, 0;
    mov.u32 %m, 0;
    mov.u64 %a, %globaltimer;
AGAIN:
    add.u32 %n, %n, 1;
    setp.eq.u32 p, %n, 40;
    @p bra OVER;
    mov.u64 %b, %globaltimer;
    sub.u64 %c, %b, %a;
    setp.gt.u64 q, %c, 1000;
    {body}
    bra AGAIN;
OVER:
    st.global.u32 [%out], %n;
    st.global.u32 [%out+4], %m;
    ret;
}}
"""
SLEEPS = {
    "for as long as the clock says": "cvt.u32.u64 %s, %c; nanosleep.u32 %s;",
    "or not, as the clock says": "@q nanosleep.u32 20;",
    "longer, as the clock says": "@q bra LONG; nanosleep.u32 20; bra AGAIN;\nLONG:\n nanosleep.u32 2000;",
}
MATTERS = {
    "stores it": "st.global.u64 [%out], %c;",
    "stores what it decides": "@q st.global.u32 [%out], 5;",
    "keeps what it decides": "@q mov.u32 %m, 5;",
    "keeps what follows from it": "cvt.u32.u64 %m, %c;",
    "leaves the loop by it": "@q bra OVER;",
    "waits until it is late": "SPIN:\n mov.u64 %b, %globaltimer; setp.lt.u64 q, %b, 9; @q bra SPIN;",
    "ends by it": "@q exit;",
    "counts with it": "@q red.global.add.u32 [%out], 1;",
}


def run(body: str) -> np.ndarray:
    out = np.zeros(2, np.uint32)
    warplab.ptx_kernel(TEXT.format(body=body), "k")[1, 32](out)
    return out


@pytest.mark.parametrize("way", SLEEPS)
def test_a_thread_may_sleep_by_a_clock(way):
    assert run(SLEEPS[way]).tolist() == [40, 0]


@pytest.mark.parametrize("way", MATTERS)
def test_a_clock_that_matters_is_refused_by_name(way):
    with pytest.raises(
        warplab.UnsupportedInstruction, match=r"k, .*%globaltimer.*%globaltimer: it has no clock"
    ):
        run(MATTERS[way])


@pytest.mark.parametrize(
    "statement, register",
    [("x[0] = clock64();", "%clock64"), ("while (clock() < 100);", "%clock")],
)
def test_a_clock_in_cuda_cpp_is_refused_with_what_to_do_instead(statement, register):
    kernel = warplab.cuda_kernel(f'extern "C" __global__ void k(long long* x)\n{{\n    {statement}\n}}', "k")
    with pytest.raises(warplab.UnsupportedInstruction, match=f"k.cu:3: .*{register}(?s:.*)warplab.bench"):
        kernel[1, 32](np.zeros(1, np.int64))


def test_a_tile_of_more_than_a_warp_is_refused_with_what_to_do_instead():
    kernel = warplab.cuda_kernel(
        "#include <cooperative_groups.h>\n"
        'extern "C" __global__ void k() { auto block = cooperative_groups::this_thread_block();\n'
        "    cooperative_groups::tiled_partition<64>(block).sync(); }",
        "k",
    )
    with pytest.raises(warplab.UnsupportedInstruction, match="tiles of more than a warp"):
        kernel[1, 128]()
