"""What a `.cu` file takes for granted, as NVRTC has it not: the C and C++ of the host that kernels use.

``nvcc`` reads the host's own headers. NVRTC has none, so that ``uint``, ``M_PI``, ``std::min`` and
``pow(2, 3)`` would be unknown. PRELUDE stands before every source (NVRTC's ``--pre-include``, so that line
numbers stay). Every other header of the host is empty here: what it declares is for host code, which is set
aside.
"""

from __future__ import annotations

import re

PRELUDE_NAME = "warplab_prelude.cuh"

_ONE = (  # functions of one number; of a whole number they are double in C++
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log log10 "
    "log1p log2 nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
).split()
_TWO = "atan2 copysign fdim fmax fmin fmod hypot pow remainder".split()
_OTHERS = (
    "abs fma frexp ilogb isfinite isinf isnan ldexp llrint llround logb lrint lround modf nan nextafter "
    "remquo scalbln scalbn signbit printf memcpy memset malloc free clock"
).split()
_SINGLE = (
    "acosf asinf atanf atan2f ceilf cosf expf exp2f fabsf floorf fmaxf fminf fmodf logf log2f log10f powf "
    "roundf sinf sqrtf tanf tanhf fmaf"
).split()
_INTEGERS = "\n".join(
    f"typedef signed {t} int{n}_t; typedef unsigned {t} uint{n}_t;"
    for n, t in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
)
_LIMITS = {
    "CHAR_BIT": "8",
    "SCHAR_MIN": "(-128)",
    "SCHAR_MAX": "127",
    "UCHAR_MAX": "255",
    "SHRT_MIN": "(-32767 - 1)",
    "SHRT_MAX": "32767",
    "USHRT_MAX": "65535",
    "INT_MIN": "(-2147483647 - 1)",
    "INT_MAX": "2147483647",
    "UINT_MAX": "4294967295U",
    "LONG_MIN": "(-9223372036854775807L - 1L)",
    "LONG_MAX": "9223372036854775807L",
    "ULONG_MAX": "18446744073709551615UL",
    "LLONG_MIN": "(-9223372036854775807LL - 1LL)",
    "LLONG_MAX": "9223372036854775807LL",
    "ULLONG_MAX": "18446744073709551615ULL",
    "SIZE_MAX": "18446744073709551615UL",
    "INT8_MAX": "127",
    "INT16_MAX": "32767",
    "INT32_MIN": "(-2147483647 - 1)",
    "INT32_MAX": "2147483647",
    "UINT8_MAX": "255",
    "UINT16_MAX": "65535",
    "UINT32_MAX": "4294967295U",
    "INT64_MAX": "9223372036854775807L",
    "UINT64_MAX": "18446744073709551615UL",
    "FLT_MAX": "3.402823466e+38F",
    "FLT_MIN": "1.175494351e-38F",
    "FLT_EPSILON": "1.192092896e-07F",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "INFINITY": "(__builtin_bit_cast(float, 0x7f800000))",
    "HUGE_VAL": "(__builtin_bit_cast(double, 0x7ff0000000000000))",
    "HUGE_VALF": "(__builtin_bit_cast(float, 0x7f800000))",
    "NAN": "(__builtin_bit_cast(float, 0x7fffffff))",
    "M_E": "2.7182818284590452354",
    "M_LOG2E": "1.4426950408889634074",
    "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402",
    "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390",
    "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
    "RAND_MAX": "2147483647",
    "EXIT_SUCCESS": "0",
    "EXIT_FAILURE": "1",
}
_WHOLE = ["char", "short", "int", "long", "long long", "signed char"] + [
    f"unsigned {t}" for t in ("char", "short", "int", "long", "long long")
]
_NUMBERS = """
typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
typedef long long intptr_t; typedef unsigned long long uintptr_t; typedef long ssize_t;
namespace warplab_prelude {
template <class T> struct whole {};
"""
_ALGORITHMS = """
typedef decltype(nullptr) nullptr_t;
typedef long ptrdiff_t;
using ::size_t;
template <class T> __host__ __device__ constexpr const T& min(const T& a, const T& b)
{ return b < a ? b : a; }
template <class T> __host__ __device__ constexpr const T& max(const T& a, const T& b)
{ return a < b ? b : a; }
template <class T> __host__ __device__ constexpr const T& clamp(const T& x, const T& a, const T& b)
{ return x < a ? a : b < x ? b : x; }
template <class T> __host__ __device__ constexpr void swap(T& a, T& b) { T c = a; a = b; b = c; }
"""


def _prelude() -> str:
    # C++17 refuses register, which older kernels put before their variables, and nvcc takes it
    lines = ["#pragma once", "#define __linux__ 1", "#define register", _INTEGERS]
    lines += [f"#ifndef {name}\n#define {name} {value}\n#endif" for name, value in _LIMITS.items()]
    lines += [_NUMBERS, *(f"template <> struct whole<{t}> {{ typedef double type; }};" for t in _WHOLE)]
    lines.append("template <class A, class B> using both = decltype(typename whole<A>::type() + ")
    lines.append("typename whole<B>::type()); }")
    for f in _ONE:
        lines.append(
            f"template <class T> __device__ inline typename warplab_prelude::whole<T>::type {f}(T x)"
        )
        lines.append(f"{{ return {f}((double)x); }}")
    for f in _TWO:
        lines.append(
            f"template <class A, class B> __device__ inline warplab_prelude::both<A, B> {f}(A x, B y)"
        )
        lines.append(f"{{ return {f}((double)x, (double)y); }}")
    lines += ["namespace std {", *(f"using ::{name};" for name in [*_ONE, *_TWO, *_OTHERS, *_SINGLE])]
    lines += [f"using ::{kind}{n}_t;" for kind in ("int", "uint") for n in (8, 16, 32, 64)]
    return "\n".join([*lines, _ALGORITHMS, "}"])


PRELUDE = _prelude()

#: Headers that NVRTC must find although it has them not: CUDA's own include some of them.
EMPTY = (
    "assert.h cassert cfloat climits cmath cstddef cstdint cstdio cstdlib cstring float.h limits.h math.h "
    "stddef.h stdint.h stdio.h stdlib.h string.h"
).split()

#: C's and the system's own headers, which are empty here and surprise nobody by it.
OF_C = re.compile(
    r"(sys/.*|ctype|errno|locale|setjmp|signal|stdarg|stdbool|time|unistd|getopt|memory)(\.h)?$"
)

_BLAS = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuComplex.h>"
_FFT = "typedef float cufftReal; typedef double cufftDoubleReal; typedef cuComplex cufftComplex;"
_CUB = "block_reduce block_scan block_load block_store block_radix_sort block_histogram block_exchange"


def _vectors() -> str:
    """helper_math.h of NVIDIA's samples: arithmetic on float2 to uint4, as far as kernels use it."""
    lines = ["#pragma once"]
    for one, n in ((one, n) for one in ("float", "int", "uint") for n in (2, 3, 4)):
        v, parts = f"{one}{n}", "xyzw"[:n]

        def define(result: str, head: str, each: str, v=v, parts=parts) -> None:
            fields = ", ".join(each.replace("$", part) for part in parts)
            lines.append(f"inline __host__ __device__ {result} {head} {{ return make_{v}({fields}); }}")

        define(v, f"make_{v}({one} a)", "a")
        for op in "+-*/" if one == "float" else "+-*":
            define(v, f"operator{op}({v} a, {v} b)", f"a.$ {op} b.$")
            define(v, f"operator{op}({v} a, {one} b)", f"a.$ {op} b")
            define(v, f"operator{op}({one} a, {v} b)", f"a {op} b.$")
            for other in (v, one):
                lines.append(
                    f"inline __host__ __device__ void operator{op}=({v}& a, {other} b) {{ a = a {op} b; }}"
                )
        if one != "uint":
            define(v, f"operator-({v} a)", "-a.$")
        less, more = ("fminf", "fmaxf") if one == "float" else ("min", "max")
        define(v, f"{less}({v} a, {v} b)", f"{less}(a.$, b.$)")
        define(v, f"{more}({v} a, {v} b)", f"{more}(a.$, b.$)")
        define(v, f"clamp({v} a, {one} b, {one} c)", f"{more}(b, {less}(a.$, c))")
        define(v, f"clamp({v} a, {v} b, {v} c)", f"{more}(b.$, {less}(a.$, c.$))")
        total = " + ".join(f"a.{part} * b.{part}" for part in parts)
        lines.append(f"inline __host__ __device__ {one} dot({v} a, {v} b) {{ return {total}; }}")
        if one == "float":
            define(v, f"lerp({v} a, {v} b, float t)", "a.$ + t * (b.$ - a.$)")
            define(v, f"fabs({v} a)", "fabsf(a.$)")
            define(v, f"floorf({v} a)", "floorf(a.$)")
            lines.append(f"inline __host__ __device__ float length({v} a) {{ return sqrtf(dot(a, a)); }}")
            lines.append(
                f"inline __host__ __device__ {v} normalize({v} a) {{ return a * rsqrtf(dot(a, a)); }}"
            )
    return "\n".join([*lines, _SIZES])


_SIZES = """
inline __host__ __device__ float clamp(float x, float a, float b) { return fmaxf(a, fminf(x, b)); }
inline __host__ __device__ int clamp(int x, int a, int b) { return max(a, min(x, b)); }
inline __host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
inline __host__ __device__ float2 make_float2(float3 a) { return make_float2(a.x, a.y); }
inline __host__ __device__ float3 make_float3(float2 a, float z) { return make_float3(a.x, a.y, z); }
inline __host__ __device__ float3 make_float3(float4 a) { return make_float3(a.x, a.y, a.z); }
inline __host__ __device__ float4 make_float4(float3 a) { return make_float4(a.x, a.y, a.z, 0.0f); }
inline __host__ __device__ float4 make_float4(float3 a, float w) { return make_float4(a.x, a.y, a.z, w); }
inline __host__ __device__ float3 cross(float3 a, float3 b)
{ return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
inline __host__ __device__ float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
"""

#: Of headers for the host what kernels use: types, and the parts of CUB that are for a block or a warp.
STAND_INS = {
    "cuda.h": "#pragma once\ntypedef unsigned long long CUdeviceptr, CUtexObject, CUsurfObject;\n"
    "typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;",
    "cudaTypedefs.h": "#include <cuda.h>",
    "cublas_v2.h": _BLAS,
    "cublasLt.h": _BLAS,
    "cublas.h": _BLAS,
    "cufft.h": f"#include <cuComplex.h>\n{_FFT} typedef cuDoubleComplex cufftDoubleComplex;",
    "cufftXt.h": "#include <cufft.h>",
    "helper_math.h": _vectors(),
    "cub/cub.cuh": "\n".join(
        [f"#include <cub/block/{name}.cuh>" for name in _CUB.split()]
        + [f"#include <cub/warp/{name}.cuh>" for name in ("warp_reduce", "warp_scan")]
    ),
}

#: CUDA's headers that are for host code, where they are installed.
FOR_HOST = re.compile(
    r"thrust/|(cuda|nvrtc|nvvm|nvJitLink|channel_descriptor|driver_functions)\.h$|nv(ml|toolsext|tx)|nccl|"
    r"cuda_?(occupancy|profiler|egl|gl|vdpau)|cu(blas|sparse|solver|fft|dnn|pti|tensor|file)",
    re.I,
)

_OF_CUDA = {  # what kernels use of namespace std that CUDA's own library has, by its header there
    "limits": "numeric_limits",
    "type_traits": "is_same is_same_v enable_if enable_if_t conditional conditional_t is_floating_point "
    "is_floating_point_v is_integral is_integral_v is_arithmetic is_signed is_unsigned is_pointer true_type "
    "false_type bool_constant integral_constant remove_reference_t remove_cv_t remove_const_t decay_t "
    "make_unsigned_t make_signed_t common_type_t void_t",
    "utility": "pair make_pair declval index_sequence make_index_sequence integer_sequence",
    "functional": "plus minus multiplies divides greater less greater_equal less_equal equal_to",
    "array": "array",
    "tuple": "tuple make_tuple get tie",
    "complex": "complex",
    "bit": "bit_cast",
}


def library_for(text: str) -> str:
    """C++ that brings the parts of CUDA's own standard library that ``text`` names with ``std::``."""
    used = set(re.findall(r"\bstd\s*::\s*(\w+)", text))
    lines = []
    for header, names in _OF_CUDA.items():
        if found := sorted(used & set(names.split())):
            uses = " ".join(f"using ::cuda::std::{name};" for name in found)
            lines.append(f"#include <cuda/std/{header}>\nnamespace std {{ {uses} }}")
    return "\n".join(lines)
