"""What of a CUDA C++ source reaches the compiler, what errors say, how values of the host reach a kernel."""

import ctypes
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numba import cuda
from told import compile_error

import warplab
from warplab.simt.toolchain import nvrtc

KERNEL = "__global__ void k(float* x) { x[threadIdx.x] += 1.0f; }\n"


def test_an_error_is_the_compilers_line_the_authors_line_and_how_many_more():
    source = (
        "#include <cstdio>\nint main() {}\n__global__ void k(int* x)\n{\n    x[0] = y;\n    x[1] = z\n}\n"
    )
    assert compile_error(source) == (
        'compile error in kernel k: k.cu(5): error: identifier "y" is undefined\n'
        "      x[0] = y;\n"
        "             ^\n"
        "(2 more errors)"
    )


def test_one_more_error_is_counted_alone():
    assert compile_error("__global__ void k(int* x)\n{\n    x[0] = y;\n    x[1] = z;\n}\n").endswith(
        "(1 more error)"
    )


def test_a_call_of_host_code_is_told_where_it_stands():
    error = compile_error(
        "#include <cmath>\n\nfloat f(float x) { return x; }\n__global__ void k(float* x) { x[0] = f(1); }"
    )
    assert 'k.cu(4): error: identifier "f" is undefined' in error
    assert "f is host code (k.cu:3): a kernel can use only __device__, __constant__ or constexpr" in error


@pytest.mark.parametrize("use", ["curandState *state", "const curandState *const state", "Rng<float> r"])
def test_a_type_from_a_header_that_is_not_there_is_told_which(use):
    error = compile_error(f"#include <time.h>\n#include <curand_kernel.h>\n__global__ void k({use}) {{}}\n")
    assert "k.cu(3)" in error and "treated as empty: curand_kernel.h" in error


def test_a_name_from_a_header_that_is_not_there_is_told_which():
    error = compile_error(
        '#include <vector>\n#include "mine.h"\n__global__ void k(float* x) { x[0] = MINE; }'
    )
    assert 'k.cu(3): error: identifier "MINE" is undefined' in error
    assert "not found, and so treated as empty: mine.h; headers of your own are searched" in error


@pytest.mark.parametrize(
    "name, message",
    [
        ("other", r"the source has no kernel 'other'; it has k, ns::inner, scale"),
        ("inner", r"no kernel 'inner'; it has k, ns::inner"),
        ("scale", r"scale is a template: name one instance of it, such as scale<float>"),
    ],
)
def test_a_kernel_that_is_not_there_is_told_which_are(name, message):
    source = (
        KERNEL
        + "namespace ns { __global__ void inner() {} }\ntemplate <class T> __global__ void scale(T* x) {}\n"
    )
    with pytest.raises(warplab.CompileError, match=message):
        warplab.cuda_kernel(source, name)


MADE = """
#define MADE(name, n) \\
    extern "C" __global__ void name(int* x) { x[0] = (n); }
MADE(one, 1)
MADE(two, 2)
enum class Edge { torus, walls };
template <Edge edge> __global__ void sides(int* x) { x[0] = edge == Edge::walls ? 4 : 0; }
struct Double { __device__ int operator()(int a) const { return 2 * a; } };
template <typename F, unsigned int N> __global__ void apply(int* x) { x[0] = F()(N); }
"""


@pytest.mark.parametrize("name, value", [("two", 2), ("sides<Edge::walls>", 4), ("apply<Double, 3>", 6)])
def test_kernels_that_a_macro_makes_and_instances_are_found_by_their_names(name, value):
    x = np.zeros(1, np.int32)
    warplab.cuda_kernel(MADE, name)[1, 1](x)
    assert x[0] == value


def test_an_error_in_a_header_names_the_header(tmp_path):
    (tmp_path / "tools.cuh").write_text(
        "#pragma once\nint host() { return 1; }\n__device__ int f() { return g; }\n"
    )
    (tmp_path / "main.cu").write_text('#include "tools.cuh"\n' + KERNEL)
    with pytest.raises(warplab.CompileError, match=r'tools.cuh\(3\): error: identifier "g" is undefined'):
        warplab.cuda_kernel(tmp_path / "main.cu", "k")


def test_headers_of_the_authors_own_lie_beside_the_file_that_includes_them(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.cuh").write_text('#include "b.cuh"\n#include "b.cuh"\nvoid host_a() {}\n')
    (tmp_path / "lib" / "b.cuh").write_text(
        "#pragma once\nstruct B { std::string s; };\n__device__ int b() { return 5; }\n"
    )
    (tmp_path / "main.cu").write_text('#include "lib/a.cuh"\n__global__ void k(int* x) { x[0] = b(); }\n')
    x = np.zeros(1, np.int32)
    warplab.cuda_kernel(tmp_path / "main.cu", "k")[1, 1](x)
    assert x[0] == 5
    (tmp_path / "lib" / "b.cuh").write_text("#pragma once\n__device__ int b() { return 6; }\n")
    warplab.cuda_kernel(tmp_path / "main.cu", "k")[1, 1](x)  # a changed header is read again
    assert x[0] == 6


def test_vectors_of_the_samples_helper():
    source = """
    #include <helper_math.h>
    __global__ void k(float* x, int* n)
    {
        float3 a = make_float3(1.0f, 2.0f, 3.0f), b = make_float3(2.0f);
        a += 1.0f;                                        // 2 3 4
        x[0] = dot(a, b);                                 // 18
        x[1] = length(cross(a, make_float3(0, 0, 1)));    // |(3, -2, 0)|
        float4 c = lerp(make_float4(a, 5), make_float4(0.0f), 0.5f) * 2 - b.x;
        x[2] = c.w + (-(a * 1)).z;                            // 3 - 4
        x[3] = normalize(make_float2(3, 4)).y;
        x[4] = clamp(fmaxf(a, b * 1.25f), 2.5f, 3.5f).x;
        int2 i = 3 * make_int2(4) + make_int2(1, 2);
        n[0] = min(i, make_int2(13)).y;
    }
    int main() {}
    """
    x, n = np.zeros(5, np.float32), np.zeros(1, np.int32)
    warplab.cuda_kernel(source, "k")[1, 1](x, n)
    np.testing.assert_allclose(x, [18, 13**0.5, -1, 0.8, 2.5], rtol=1e-6)
    assert n[0] == 13


@pytest.mark.slow
def test_a_block_of_threads_reduces_with_cub():
    source = """
    #include <cub/cub.cuh>
    #include <cublas_v2.h>
    template <int N> __global__ void sum(const int* x, int* out, cuComplex c)
    {
        typedef cub::BlockReduce<int, N> Reduce;
        __shared__ typename Reduce::TempStorage memory;
        int total = Reduce(memory).Sum(x[threadIdx.x]);
        if (threadIdx.x == 0) *out = total + (int)__half2float(__float2half(c.y));
    }
    """
    x, out = np.arange(128, dtype=np.int32), np.zeros(1, np.int32)
    warplab.cuda_kernel(source, "sum<128>")[1, 128](x, out, np.complex64(1 + 3j))
    assert out[0] == 127 * 64 + 3


# Variables by name

VARIABLES = """
namespace ns { __constant__ float mask[2][3]; }
__constant__ int table[3] = {1, 2, 3};
__device__ int count;
__device__ float4 quad[2];
__device__ const float* head;
struct Point { float x; double y; };
__constant__ Point origin;
__device__ bool flags[2];
__managed__ long long total;
typedef unsigned char byte;
__device__ byte bytes[4];
__global__ void read(double* out)
{
    out[0] = ns::mask[1][2];
    out[1] = table[0] + table[2];
    out[2] = count++;
    out[3] = quad[1].z;
    out[4] = head ? head[1] : -1;
    out[5] = origin.x + origin.y;
    out[6] = flags[1];
    out[7] = total;
    out[8] = bytes[3];
}
__global__ void add(int by) { atomicAdd(&count, by); }
template <int by> __global__ void subtract() { count -= by; }
"""


def variables(tag):
    """A source of its own, so that no test sees another's variables."""
    return f"// {tag}\n{VARIABLES}"


@pytest.mark.slow
def test_variables_are_set_and_read_by_name():
    read, out = warplab.cuda_kernel(variables("set"), "read"), np.zeros(9)
    assert read.symbol("table").get().tolist() == [1, 2, 3]
    read.symbol("ns::mask").set(np.arange(6, dtype=np.float32).reshape(2, 3))
    read.symbol("table").set([7, 8, 9])
    read.symbol("quad").set(np.full((2, 4), 2.5, np.float32))
    array = cuda.to_device(np.array([3, 4], np.float32))
    read.symbol("head").set(array)
    read.symbol("origin").set(np.array((1, 2), np.dtype([("x", "f4"), ("y", "f8")], align=True)))
    read.symbol("flags").set([False, True])
    read.symbol("total").set(1 << 40)
    read.symbol("bytes").set([0, 0, 0, 255])
    read[1, 1](out)
    assert out.tolist() == [5, 16, 0, 2.5, 4, 3, 1, 1 << 40, 255]
    assert read.symbol("count").get() == 1  # the kernel added one


def test_kernels_of_one_source_share_its_variables():
    source, out = variables("shared"), np.zeros(9)
    warplab.cuda_kernel(source, "add")[1, 32](2)
    warplab.cuda_kernel(source, "subtract<4>")[1, 1]()
    read = warplab.cuda_kernel(source, "read")
    read[1, 1](out)
    assert out[2] == 60 and read.symbol("count").get() == 61
    assert warplab.cuda_kernel(variables("another"), "read").symbol("count").get() == 0


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("nothing", 1, "no variable 'nothing'; it has .*table"),
        ("mask", 1, "no variable 'mask'"),
        ("table", [1, 2], r"table has shape \(3,\), and the value has shape \(2,\)"),
        ("ns::mask", np.zeros((2, 3)), "ns::mask is float32, and the value is float64"),
        ("table", [1, 2, 2.5], "is int32, which does not hold"),
        ("bytes", [0, 0, 0, 256], "is uint8, which does not hold"),
        ("bytes", [0, 0, 0, -1], "is uint8, which does not hold"),
        ("origin", np.zeros(3), "has 16 bytes an element"),
    ],
)
def test_values_that_do_not_fit_a_variable_are_refused(name, value, message):
    with pytest.raises(warplab.InvalidLaunch, match=message):
        warplab.cuda_kernel(variables("refused"), "read").symbol(name).set(value)


CONSTANTS = """
__constant__ float none[2];
__constant__ float zeros[2] = {0, 0};
__constant__ float braces[2]{};
namespace { __constant__ float nowhere, zero = 0; }
__global__ void read(float* x) { x[0] = NAME; }
"""


@pytest.mark.parametrize(
    "name, set_before, warned",
    [
        ("none[1]", None, True),
        ("none[1]", "none", False),
        ("zeros[1]", None, False),
        ("braces[1]", None, False),
        ("zero", None, False),
    ],
)
def test_constant_memory_that_nobody_set_gives_one_warning(name, set_before, warned, recwarn):
    source = f"// {set_before}\n" + CONSTANTS.replace("NAME", name)
    read, x = warplab.cuda_kernel(source, "read"), np.ones(1, np.float32)
    if set_before:
        read.symbol(set_before).set([0, 0])
    read[1, 1](x)
    read[1, 1](x)
    told = [str(w.message) for w in recwarn if "never" in str(w.message) or "set" in str(w.message)]
    assert len(told) == warned and x[0] == 0
    assert not warned or told[0].startswith("constant memory in kernel read, read.cu:7: none is read")


def test_numba_s_constant_arrays_have_values_even_where_these_are_zero(recwarn):
    zeros, x = np.zeros(4, np.float32), np.ones(32, np.float32)

    @cuda.jit
    def copies(x):
        table = cuda.const.array_like(zeros)
        x[cuda.threadIdx.x] = table[cuda.threadIdx.x % 4]

    copies[1, 32](x)
    assert not [w for w in recwarn if w.category is warplab.UnsetConstant] and (x == 0).all()


# Structs by value

STRUCT = """
struct Inner { short s; float f; };
struct Job { int n; double scale; Inner inner; const float* x; unsigned char flag; };
__global__ void run(Job job, double* out)
{
    out[0] = job.n; out[1] = job.scale; out[2] = job.inner.s; out[3] = job.inner.f;
    out[4] = job.x[job.n]; out[5] = job.flag;
}
__global__ void four(float4 v, double* out) { out[0] = v.x + v.w; }
struct Pair { float a, b; };
__global__ void narrow(Pair v, double* out) { out[0] = v.a; }
"""


@dataclasses.dataclass
class Inner:
    s: np.int16
    f: np.float32


@dataclasses.dataclass
class Job:
    n: np.int32
    scale: ctypes.c_double
    inner: Inner
    x: np.ndarray
    flag: bool


class CInner(ctypes.Structure):
    _fields_ = [("s", ctypes.c_short), ("f", ctypes.c_float)]


class CJob(ctypes.Structure):
    _fields_ = [
        ("n", ctypes.c_int),
        ("scale", ctypes.c_double),
        ("inner", CInner),
        ("x", ctypes.c_uint64),
        ("flag", ctypes.c_ubyte),
    ]


INNER = np.dtype([("s", "i2"), ("f", "f4")], align=True)
JOB = np.dtype([("n", "i4"), ("scale", "f8"), ("inner", INNER), ("x", "u8"), ("flag", "u1")], align=True)


@pytest.mark.parametrize("kind", ["dataclass", "dataclass with a device array", "record", "ctypes"])
def test_a_struct_goes_by_value(kind):
    x, out = np.array([1, 2, 3, 4], np.float32), np.zeros(6)
    there = cuda.to_device(x)
    address = there.device_ctypes_pointer.value
    job = {
        "dataclass": Job(3, 0.25, Inner(-7, 1.5), x, True),
        "dataclass with a device array": Job(3, 0.25, Inner(-7, 1.5), there, True),
        "record": np.array((3, 0.25, (-7, 1.5), address, 1), JOB)[()],
        "ctypes": CJob(3, 0.25, CInner(-7, 1.5), address, 1),
    }[kind]
    warplab.cuda_kernel(STRUCT, "run")[1, 1](job, out)
    assert out.tolist() == [3, 0.25, -7, 1.5, 4, 1]


def test_a_vector_goes_by_value_as_a_record_or_a_complex_number():
    out = np.zeros(1)
    warplab.cuda_kernel(STRUCT, "four")[1, 1](np.array((1, 2, 3, 4), "f4,f4,f4,f4")[()], out)
    assert out[0] == 5
    warplab.cuda_kernel(STRUCT, "narrow")[1, 1](np.complex64(3 + 4j), out)
    assert out[0] == 3


@dataclasses.dataclass
class Vague:
    x: float
    y: float


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("run", np.array((1, 2), "i4,f8")[()], "argument number 1 has 12 bytes.* the kernel wants 40"),
        ("run", Inner(1, 2), "has 8 bytes, and the kernel wants 40"),
        ("narrow", np.array((1,), np.dtype([("a", "f8")], align=True))[()], "has a field of 8 bytes"),
        ("narrow", np.float64(3), "has a field of 8 bytes"),
        ("narrow", Vague(1, 2), r"number 1.x has no C type: it is annotated as float"),
        ("narrow", 3, "is a int; pass arrays, numbers and structs"),
        ("narrow", "text", "is a str"),
        ("run", Inner, "is a type"),
    ],
)
def test_a_struct_of_another_size_or_alignment_is_refused(name, value, message):
    with pytest.raises(warplab.InvalidLaunch, match=message):
        warplab.cuda_kernel(STRUCT, name)[1, 1](value, np.zeros(6))


# Addresses in initialisers

ADDRESSES = """
__device__ int data[4] = {10, 20, 30, 40};
__device__ int* head = data + 2;
__device__ const char* const words[2] = {"no", "yes"};
struct Shape { __device__ virtual int area(int a) const { return 0; } };
struct Square : Shape { __device__ int area(int a) const override { return a * a; } };
struct Half : Square { __device__ int area(int a) const override { return Square::area(a) / 2; } };
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
typedef int (*binary)(int, int);
__constant__ binary table[2] = {plus, times};
__device__ binary other = times;
__global__ void look(int* out, int which)
{
    out[0] = *head;
    out[1] = words[which][0];
    Square square; Half half;
    const Shape* shape = which ? (const Shape*)&square : &half;
    out[2] = shape->area(6);
    out[3] = table[which](3, 4);
    out[4] = other(5, 6);
}
int main() { look<<<1, 1>>>(nullptr, 1); }
"""


@pytest.mark.parametrize("which, expected", [(0, [30, ord("n"), 18, 7, 30]), (1, [30, ord("y"), 36, 12, 30])])
def test_addresses_in_initialisers_and_virtual_functions(which, expected):
    out = np.zeros(5, np.int32)
    warplab.cuda_kernel(ADDRESSES, "look")[1, 1](out, which)
    assert out.tolist() == expected


COOPERATIVE = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void total(int* x) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    x[threadIdx.x] = cg::reduce(warp, x[threadIdx.x], cg::plus<int>());
    EXTRA
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra, whole",
    [
        ("", False),
        ("\n#include <thrust/sort.h>\n", False),  # for the host, and empty here
        ("cuda::atomic_ref<int, cuda::thread_scope_device>(x[0]).fetch_add(0);", True),
        ("constexpr auto scope = cg::thread_block::thread_scope;", True),  # only with libcu++ it has one
    ],
)
def test_cooperative_groups_bring_libcuxx_only_where_it_is_asked_for(extra, whole):
    x = np.arange(32, dtype=np.int32)
    kernel = warplab.cuda_kernel(COOPERATIVE.replace("EXTRA", extra), "total")
    kernel[1, 32](x)
    assert (x == 31 * 16).all()
    prepared = nvrtc.prepare(COOPERATIVE.replace("EXTRA", extra), "total")
    ptx, _ = nvrtc.compile_ptx(prepared, "total", "sm_90")
    assert ("cuda3std" in ptx) == whole


def test_libcuxx_still_takes_the_switch_that_halves_the_time_to_read_it():
    name = "#if !defined(_CCCL_META_UNROLL_LIMIT)"
    lists = [Path(f) / "cuda/std/__type_traits/type_list.h" for f in nvrtc.include_folders()]
    assert any(path.is_file() and name in path.read_text() for path in lists)
    assert "-D_CCCL_META_UNROLL_LIMIT=10" in nvrtc._options("sm_90")


@pytest.mark.slow
def test_a_mistake_beside_cooperative_groups_is_told_once_and_in_the_authors_words():
    said = compile_error(COOPERATIVE.replace("EXTRA", "y = 1;"), "total")
    assert said.count('identifier "y" is undefined') == 1


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("__global__ void c(int* x) {} __global__ void k(int* x) { c<<<1, 1>>>(x); }", "k", "let the host"),
        ("__global__ void k(int* x) { cudaMalloc(&x, 4); }", "k", "let the host do it"),
        ("__global__ void k(int* x) { x[0] = __shfl_down(x[1], 1); }", "k", "as __shfl_down_sync"),
        ("__global__ void k(std::vector<int> x) {}", "k", "has plain arrays, and printf"),
        ("texture<float, 2> t;\n__global__ void k(float* x) { x[0] = tex2D(t, 0, 0); }", "k", "since CUDA"),
        ("__global__ void k(curandState* s) {}", "k", "write a generator of your own"),
        ("template <int N> __global__ void k(int* x) { x[0] = N; }", "k<SIZE>", "has no SIZE outside"),
        ("#ifdef FAST\n__global__ void k() {}\n#endif", "k", "k is inside an #if that is false here"),
    ],
)
def test_what_the_compiler_words_for_itself_is_told_to_readers_too(source, name, said):
    assert said in compile_error(source + "\n", name)


def test_the_computer_is_linux_for_a_source_that_asks():
    source = "#if !defined(__linux__)\n#error which computer is this?\n#endif\n__global__ void k() {}"
    warplab.cuda_kernel(source, "k")[1, 1]()


def test_dynamic_shared_memory_is_called_what_its_kernel_calls_it():
    """The other kernels of a source have names of their own for the same bytes."""
    kernels = [
        f"__global__ void of_{name}(int* x) {{ extern __shared__ int {name}[]; {name}[threadIdx.x] = x[0]; }}"
        for name in ("mine", "yours", "theirs")
    ]
    for name in ("mine", "yours", "theirs"):
        kernel = warplab.cuda_kernel("\n".join(kernels), f"of_{name}")
        with pytest.raises(warplab.OutOfBounds, match=rf"writes {name}\[16\]"):
            kernel[1, 32, 0, 64](np.zeros(1, np.int32))


def test_a_null_pointer_is_passed_as_0_and_none_is_told_so():
    source = "__global__ void k(int* x, const int* bias) { x[0] = bias ? bias[0] : 7; }\n"
    x = np.zeros(1, np.int32)
    warplab.cuda_kernel(source, "k")[1, 1](x, 0)
    assert x[0] == 7
    with pytest.raises(warplab.InvalidLaunch, match="a NoneType; .*, and 0 for a null pointer"):
        warplab.cuda_kernel(source, "k")[1, 1](x, None)


SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""


@pytest.mark.parametrize(
    "args, message",
    [
        ((1, 2.0), "takes 4 arguments and got 2"),
        ((1.5, 2.0, 0, 0), "wants a whole number"),
        ((1, "two", 0, 0), "is a str"),
        ((1 << 40, 2.0, 0, 0), "does not fit 32 bits"),
        ((np.zeros(4, np.int32), 2.0, 0, 0), "number 1 has 8 bytes .*address of an array.*wants 4"),
    ],
)
def test_wrong_arguments_are_refused(args, message):
    with pytest.raises(warplab.InvalidLaunch, match=message):
        warplab.cuda_kernel(SAXPY, "saxpy")[1, 32](*args)
