"""machine_code(): source, PTX and SASS side by side, as text and as a table."""

import html
import re

import numpy as np
import pytest
from numba import cuda, float32

import warplab
from warplab.simt import machine_code as shown
from warplab.simt.toolchain import nvdisasm
from warplab.simt.toolchain.ptxas import ToolchainError, find

needs_nvdisasm = pytest.mark.skipif(find("nvdisasm") is None, reason="nvdisasm is not installed")

CPP = """#include <cuda_fp16.h>
template <typename T> __global__ void scale(const T* x, T* out, T factor) {
    int i = threadIdx.x;
    if (i < 5)
        out[i] = factor * x[i];
}"""

THREE = np.float32(3)


@cuda.jit
def triad(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + THREE * b[i]


x = np.zeros(4, np.float32)


def of(code, text):
    return next(line for line in code.lines if text in line.source)


@pytest.mark.slow
@needs_nvdisasm
def test_a_line_of_python_stands_beside_its_ptx_and_its_machine_code():
    code = warplab.machine_code(triad, x, x, x)
    line = of(code, "a[i] + THREE * b[i]")
    ptx, sass = " ".join(line.ptx), " ".join(line.sass)
    assert (
        ptx.count("ld.global") == sass.count("LDG") == 2 and ptx.count("st.global") == sass.count("STG") == 1
    )
    assert "setp" in " ".join(of(code, "if i < out.size").ptx) and "ISETP" in " ".join(
        of(code, "if i <").sass
    )
    assert code.lines == sorted(code.lines, key=lambda one: one.line) and (code.kernel, code.arch) == (
        "triad",
        "sm_90",
    )


@needs_nvdisasm
def test_nothing_is_lost_or_shown_twice():
    code = warplab.machine_code(triad, x, x, x)
    ptx = warplab.profile(triad[1, 4], x, x, x).ptx
    statements = re.findall(r"^\s+(?:@!?%p\d+ +)?[a-z][\w.:]* ?[^\n]*;", ptx.split("\n{", 1)[1], re.M)
    listed = nvdisasm.machine_code_of(ptx, re.search(r"\.entry\s+(\w+)", ptx)[1])
    assert code.counts == (len(statements), len(listed))
    shown_sass = sorted(text for one in code.lines for text in one.sass if not text.endswith(":"))
    assert shown_sass == sorted(instr.text for instr in listed)


@pytest.mark.slow
@needs_nvdisasm
def test_types_decide_the_code_and_the_architecture_does():
    double, single = (warplab.machine_code(triad, *[x.astype(t)] * 3) for t in ("f8", "f4"))
    assert "DFMA" in str(double) and "DFMA" not in str(single)
    assert "STG.E desc[" in str(single)  # since Hopper, through a descriptor
    ampere = warplab.machine_code(triad, x, x, x, arch="sm_80")
    assert ampere.arch == "sm_80" and "for sm_80" in str(ampere) and "STG.E [" in str(ampere)


@pytest.mark.slow
@needs_nvdisasm
def test_a_template_of_cpp_and_a_configured_kernel():
    kernel = warplab.cuda_kernel(CPP, "scale<float>")
    code = warplab.machine_code(kernel[1, 32])
    line = of(code, "out[i] = factor * x[i]")
    assert line.line == 5 and any("FMUL" in text for text in line.sass)
    assert any("mul.f32" in text for text in line.ptx) and "[param_2]" in str(code)
    header = warplab.machine_code(warplab.cuda_kernel(CPP, "scale<half>"))
    assert any(
        "HMUL2" in text for text in of(header, "out[i] =").sass
    )  # inlined from cuda_fp16.hpp: its caller's


@cuda.jit
def turned(a):
    tile = cuda.shared.array((4, 1), float32)
    t = cuda.threadIdx.x
    tile[t, 0] = a[t]
    cuda.syncthreads()
    a[t] = tile[3 - t, 0]


@pytest.mark.slow
@needs_nvdisasm
def test_parameters_and_shared_arrays_have_their_short_names():
    store = " ".join(of(warplab.machine_code(turned, x), "tile[t, 0] = a[t]").ptx)
    assert re.search(r", tile\b", store) and "_cudapy" not in store and "st.shared" in store


@pytest.mark.slow
@needs_nvdisasm
def test_without_arguments_it_is_what_ran_last():
    @cuda.jit
    def fresh(a):
        a[0] = 1

    with pytest.raises(TypeError, match=r"launch it once, or write machine_code\(fresh, \.\.\.\)"):
        warplab.machine_code(fresh)
    code = warplab.machine_code(fresh[1, 1], x)
    assert str(warplab.machine_code(fresh)) == str(code)


def test_another_object_is_refused():
    with pytest.raises(TypeError, match="and got function"):
        warplab.machine_code(lambda a: a)


def test_without_nvdisasm_it_says_what_to_install(monkeypatch):
    nvdisasm.machine_code_of.cache_clear()
    monkeypatch.setattr(nvdisasm, "find", lambda tool="ptxas": None)
    with pytest.raises(ToolchainError, match="nvdisasm is not installed; pip install nvidia-cuda-nvdisasm"):
        warplab.machine_code(triad, x, x, x)
    nvdisasm.machine_code_of.cache_clear()


def test_the_table_escapes_the_source_and_the_text_keeps_three_columns():
    line = shown.CodeLine("", 7, "    if a < b:  # <script>", ["setp.lt %p1, %r1, %r2"], ["ISETP P0", "BRA"])
    other = shown.CodeLine("cuda_fp16.hpp", 91, "", [], ["HADD2"])
    code = shown.MachineCode("k<float>", "sm_90", [line, other])
    page = code._repr_html_()
    assert (
        "<script>" not in page and html.escape("if a < b:  # <script>") in page and "k&lt;float&gt;" in page
    )
    assert page.count("<tr") == 3 and "overflow:auto" in page and "cuda_fp16.hpp:91" in page
    assert str(code).splitlines() == [
        "k<float>: 1 instructions of PTX, 3 of machine code (SASS) for sm_90",
        "      PTX                   | SASS",
        "   7  if a < b:  # <script>",
        "      setp.lt %p1, %r1, %r2 | ISETP P0",
        "                            | BRA",
        "cuda_fp16.hpp:91",
        "                            | HADD2",
    ]
