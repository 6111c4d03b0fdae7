"""Mistakes of beginners in CUDA C++: each ends in the compiler's line, the author's, and what to do."""

import codecs

import numpy as np
import pytest
from told import compile_error

import warplab
from warplab.simt.frontends.cell_magic import bind_kernels

KERNEL = "__global__ void k(float* x) { x[threadIdx.x] += 1.0f; }\n"


def test_a_brace_that_is_missing_is_told_with_the_one_that_stands_alone():
    assert compile_error("__global__ void k(int* x) {\n    x[0] = 1;\n") == (
        'compile error in kernel k: k.cu, at its end: error: expected a "}"\n'
        'k.cu(1): note: to match this "{"\n'
        "  __global__ void k(int* x) {\n"
        "                            ^"
    )


@pytest.mark.parametrize(
    ("line", "character"),
    [
        ("float größe = 2;", "'ö' (U+00F6, latin small letter o with diaeresis)"),
        ("printf(“hello”);", "'“' (U+201C, left double quotation mark)"),
        ("x[0]\u00a0= 1;", "(U+00A0, no-break space)"),
        ("x[0] = 3 − 1;", "'−' (U+2212, minus sign)"),
    ],
)
def test_a_character_that_cuda_does_not_know_is_named(line, character):
    said = compile_error(f"// größe – „2“\n__global__ void k(float* x) {{\n    {line}\n}}\n")
    assert "k.cu(3): error: unrecognized token" in said and character in said


def test_kernels_of_one_name_are_told_apart_by_their_parameters():
    source = "__global__ void k(float* x) { x[0] = 1; }\n__global__ void k(int* x) { x[0] = 2; }\n"
    said = compile_error(source)
    assert "several kernels are named k" in said and "__nv_name" not in said
    x = np.zeros(1, np.int32)
    warplab.cuda_kernel(source, "(void(*)(int*))k")[1, 1](x)
    assert x[0] == 2


def test_arguments_for_what_is_no_template():
    assert compile_error(KERNEL, "k<float>").endswith("k is no template: its name is k alone")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("k<float>", "does not fit the parameters of the template k"),
        ("k<3, float>", "does not fit"),
        ("k<float 3>", 'the name k<float 3>: expected a ">"'),
        ("k<float, n>", "has no n outside its functions"),
    ],
)
def test_template_arguments_that_do_not_fit(name, said):
    text = compile_error("template <class T, int N> __global__ void k(T* x) { x[0] = N; }\n", name)
    assert said in text and "__nv_name" not in text


@pytest.mark.parametrize("path", ["nowhere/kernel.cpp", "add", "no such file.txt", "~/nowhere.cu"])
def test_a_string_without_code_is_a_path(path):
    said = compile_error(path)
    assert "there is no file /" in said and "~" not in said


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_of_other_editors(tmp_path, encoding, newline):
    text = '#include "add.h"\n// für Elise\n\t__global__ void k(float* x) { x[0] = \\\nONE; }\n'
    path = tmp_path / "kernel.CU"
    path.write_bytes(text.replace("\n", newline).encode(encoding))
    (tmp_path / "add.h").write_bytes(codecs.BOM_UTF8 + f"#define ONE 1.0f{newline}".encode())
    x = np.zeros(1, np.float32)
    warplab.cuda_kernel(path, "k")[1, 1](x)
    assert x[0] == 1


def test_a_string_may_begin_with_a_byte_order_mark():
    x = np.zeros(1, np.float32)
    warplab.cuda_kernel("\ufeff" + KERNEL.replace("\n", "\r\n"), "k")[1, 1](x)
    assert x[0] == 1


@pytest.mark.parametrize("source", ['extern "C"' + KERNEL, KERNEL.replace("{", "{ register int unused;")])
def test_what_nvcc_takes_and_nvrtc_alone_does_not(source):
    x = np.zeros(1, np.float32)
    warplab.cuda_kernel(source, "k")[1, 1](x)
    assert x[0] == 1


OF_OTHER_TIMES = """
__constant__ float scale;
__device__ float old(float x) { return __shfl_xor(x, 1); }
template <class T> struct Twice { __device__ T operator()(T x) { return x + x; } };
struct Pair { float a, b; };
__device__ Pair operator+(Pair p, Pair q) { return {p.a + q.a, p.b + q.b}; }
__global__ void first(float* x) { x[0] = old(x[0]); first<<<1, 1>>>(x); }
__global__ void k(float* x) {
    Pair sum = Pair{x[0], 1.0f} + Pair{1.0f, 1.0f};
    x[0] = scale * Twice<float>()(sum.a);
}
"""


def test_a_kernel_runs_though_another_of_its_file_does_not_compile():
    k = warplab.cuda_kernel(OF_OTHER_TIMES, "k")
    k.symbol("scale").set(10)
    x = np.full(1, 2.0, np.float32)
    k[1, 1](x)
    assert x[0] == 60
    assert "__shfl_xor_sync" in compile_error(OF_OTHER_TIMES, "first")


def test_of_several_mistakes_that_of_the_kernel_itself_is_told():
    assert 'k.cu(10): error: identifier "bias" is undefined' in compile_error(
        OF_OTHER_TIMES.replace("scale * ", "bias * ")
    )


@pytest.mark.parametrize(
    ("arguments", "cell", "said"),
    [
        ("", KERNEL.replace("__global__ ", ""), r"no kernel to bind.*\n.*__global__ void k\("),
        ("", KERNEL.replace("__global__ ", "__global "), r"__global__ void k\("),
        ("", "template <class T> " + KERNEL.replace("float", "T"), r"%%cuda k=k<float>"),
        ("k<float>", KERNEL, "takes name=kernel"),
        ("", KERNEL + KERNEL, "already been defined"),
        ("", KERNEL + KERNEL.replace("float", "int"), "several kernels are named k"),
    ],
)
def test_after_a_cell_that_failed_no_earlier_kernel_of_its_names_is_left(arguments, cell, said):
    names = {"k": warplab.cuda_kernel(KERNEL, "k"), "other": 1}
    with pytest.raises(warplab.CompileError, match=said):
        bind_kernels(arguments, cell, names)
    assert names == {"other": 1}


def test_a_kernel_that_lost_its_global_beside_one_that_has_it():
    names = {"k": warplab.cuda_kernel(KERNEL, "k")}
    bind_kernels("", "__global__ void added() {}\n" + KERNEL.replace("__global__", "__global"), names)
    assert list(names) == ["added"]


def test_kernels_of_one_name_in_a_cell_are_bound_by_those_that_are_asked_for():
    source = KERNEL + KERNEL.replace("float*", "int*") + "__global__ void plain() {}\n"
    names = {}
    bind_kernels("whole=(void(*)(int*))k", source, names)
    assert sorted(names) == ["plain", "whole"]
