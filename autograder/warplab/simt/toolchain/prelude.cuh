// Declarations that nvcc gets from the host's headers; included before every source.
#pragma once
#define __linux__ 1
#define register // nvcc accepts this keyword of older kernels, which C++17 refuses

typedef signed char int8_t; typedef unsigned char uint8_t;
typedef signed short int16_t; typedef unsigned short uint16_t;
typedef signed int int32_t; typedef unsigned int uint32_t;
typedef signed long long int64_t; typedef unsigned long long uint64_t;
typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
typedef long long intptr_t; typedef unsigned long long uintptr_t; typedef long ssize_t;

#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32767 - 1)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1L)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1LL)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#define SIZE_MAX 18446744073709551615UL
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#define HUGE_VAL (__builtin_bit_cast(double, 0x7ff0000000000000))
#define HUGE_VALF (__builtin_bit_cast(float, 0x7f800000))
#define NAN (__builtin_bit_cast(float, 0x7fffffff))
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define RAND_MAX 2147483647
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

// Math functions of integer arguments, which C++ computes in double.
namespace warplab_prelude {
template <class T> struct whole {};
template <> struct whole<char> { typedef double type; };
template <> struct whole<short> { typedef double type; };
template <> struct whole<int> { typedef double type; };
template <> struct whole<long> { typedef double type; };
template <> struct whole<long long> { typedef double type; };
template <> struct whole<signed char> { typedef double type; };
template <> struct whole<unsigned char> { typedef double type; };
template <> struct whole<unsigned short> { typedef double type; };
template <> struct whole<unsigned int> { typedef double type; };
template <> struct whole<unsigned long> { typedef double type; };
template <> struct whole<unsigned long long> { typedef double type; };
template <class A, class B> using both = decltype(typename whole<A>::type() + typename whole<B>::type());
}
#define WARPLAB_ONE(f) \
    template <class T> __device__ inline typename warplab_prelude::whole<T>::type f(T x) \
    { return f((double)x); }
#define WARPLAB_TWO(f) \
    template <class A, class B> __device__ inline warplab_prelude::both<A, B> f(A x, B y) \
    { return f((double)x, (double)y); }
WARPLAB_ONE(acos) WARPLAB_ONE(acosh) WARPLAB_ONE(asin) WARPLAB_ONE(asinh) WARPLAB_ONE(atan)
WARPLAB_ONE(atanh) WARPLAB_ONE(cbrt) WARPLAB_ONE(ceil) WARPLAB_ONE(cos) WARPLAB_ONE(cosh) WARPLAB_ONE(erf)
WARPLAB_ONE(erfc) WARPLAB_ONE(exp) WARPLAB_ONE(exp2) WARPLAB_ONE(expm1) WARPLAB_ONE(fabs) WARPLAB_ONE(floor)
WARPLAB_ONE(lgamma) WARPLAB_ONE(log) WARPLAB_ONE(log10) WARPLAB_ONE(log1p) WARPLAB_ONE(log2)
WARPLAB_ONE(nearbyint) WARPLAB_ONE(rint) WARPLAB_ONE(round) WARPLAB_ONE(sin) WARPLAB_ONE(sinh)
WARPLAB_ONE(sqrt) WARPLAB_ONE(tan) WARPLAB_ONE(tanh) WARPLAB_ONE(tgamma) WARPLAB_ONE(trunc)
WARPLAB_TWO(atan2) WARPLAB_TWO(copysign) WARPLAB_TWO(fdim) WARPLAB_TWO(fmax) WARPLAB_TWO(fmin)
WARPLAB_TWO(fmod) WARPLAB_TWO(hypot) WARPLAB_TWO(pow) WARPLAB_TWO(remainder)
#undef WARPLAB_ONE
#undef WARPLAB_TWO

namespace std {
using ::acos, ::acosh, ::asin, ::asinh, ::atan, ::atanh, ::cbrt, ::ceil, ::cos, ::cosh, ::erf, ::erfc,
::exp, ::exp2, ::expm1, ::fabs, ::floor, ::lgamma, ::log, ::log10, ::log1p, ::log2, ::nearbyint, ::rint,
::round, ::sin, ::sinh, ::sqrt, ::tan, ::tanh, ::tgamma, ::trunc, ::atan2, ::copysign, ::fdim, ::fmax,
::fmin, ::fmod, ::hypot, ::pow, ::remainder, ::abs, ::fma, ::frexp, ::ilogb, ::isfinite, ::isinf, ::isnan,
::ldexp, ::llrint, ::llround, ::logb, ::lrint, ::lround, ::modf, ::nan, ::nextafter, ::remquo, ::scalbln,
::scalbn, ::signbit, ::printf, ::memcpy, ::memset, ::malloc, ::free, ::clock, ::acosf, ::asinf, ::atanf,
::atan2f, ::ceilf, ::cosf, ::expf, ::exp2f, ::fabsf, ::floorf, ::fmaxf, ::fminf, ::fmodf, ::logf, ::log2f,
::log10f, ::powf, ::roundf, ::sinf, ::sqrtf, ::tanf, ::tanhf, ::fmaf;
using ::int8_t, ::int16_t, ::int32_t, ::int64_t, ::uint8_t, ::uint16_t, ::uint32_t, ::uint64_t;
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
}
