// Arithmetic on float2 to uint4: the parts of helper_math.h, of NVIDIA's samples, that kernels use.
#pragma once
#define WARPLAB inline __host__ __device__

#define WARPLAB_OPERATOR_2(V, T, op) \
    WARPLAB V operator op(V a, V b) { return make_##V(a.x op b.x, a.y op b.y); } \
    WARPLAB V operator op(V a, T b) { return make_##V(a.x op b, a.y op b); } \
    WARPLAB V operator op(T a, V b) { return make_##V(a op b.x, a op b.y); } \
    WARPLAB void operator op##=(V& a, V b) { a = a op b; } \
    WARPLAB void operator op##=(V& a, T b) { a = a op b; }
#define WARPLAB_COMMON_2(V, T, less, more) \
    WARPLAB_OPERATOR_2(V, T, +) WARPLAB_OPERATOR_2(V, T, -) WARPLAB_OPERATOR_2(V, T, *) \
    WARPLAB V make_##V(T a) { return make_##V(a, a); } \
    WARPLAB V less(V a, V b) { return make_##V(less(a.x, b.x), less(a.y, b.y)); } \
    WARPLAB V more(V a, V b) { return make_##V(more(a.x, b.x), more(a.y, b.y)); } \
    WARPLAB V clamp(V a, T b, T c) \
    { return make_##V(more(b, less(a.x, c)), more(b, less(a.y, c))); } \
    WARPLAB V clamp(V a, V b, V c) \
    { return make_##V(more(b.x, less(a.x, c.x)), more(b.y, less(a.y, c.y))); } \
    WARPLAB T dot(V a, V b) { return a.x * b.x + a.y * b.y; }
#define WARPLAB_SIGNED_2(V) WARPLAB V operator-(V a) { return make_##V(-a.x, -a.y); }
#define WARPLAB_FLOAT_2(V) \
    WARPLAB_COMMON_2(V, float, fminf, fmaxf) WARPLAB_OPERATOR_2(V, float, /) WARPLAB_SIGNED_2(V) \
    WARPLAB V lerp(V a, V b, float t) { return make_##V(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)); } \
    WARPLAB V fabs(V a) { return make_##V(fabsf(a.x), fabsf(a.y)); } \
    WARPLAB V floorf(V a) { return make_##V(floorf(a.x), floorf(a.y)); } \
    WARPLAB float length(V a) { return sqrtf(dot(a, a)); } \
    WARPLAB V normalize(V a) { return a * rsqrtf(dot(a, a)); }

#define WARPLAB_OPERATOR_3(V, T, op) \
    WARPLAB V operator op(V a, V b) { return make_##V(a.x op b.x, a.y op b.y, a.z op b.z); } \
    WARPLAB V operator op(V a, T b) { return make_##V(a.x op b, a.y op b, a.z op b); } \
    WARPLAB V operator op(T a, V b) { return make_##V(a op b.x, a op b.y, a op b.z); } \
    WARPLAB void operator op##=(V& a, V b) { a = a op b; } \
    WARPLAB void operator op##=(V& a, T b) { a = a op b; }
#define WARPLAB_COMMON_3(V, T, less, more) \
    WARPLAB_OPERATOR_3(V, T, +) WARPLAB_OPERATOR_3(V, T, -) WARPLAB_OPERATOR_3(V, T, *) \
    WARPLAB V make_##V(T a) { return make_##V(a, a, a); } \
    WARPLAB V less(V a, V b) { return make_##V(less(a.x, b.x), less(a.y, b.y), less(a.z, b.z)); } \
    WARPLAB V more(V a, V b) { return make_##V(more(a.x, b.x), more(a.y, b.y), more(a.z, b.z)); } \
    WARPLAB V clamp(V a, T b, T c) \
    { return make_##V(more(b, less(a.x, c)), more(b, less(a.y, c)), \
                       more(b, less(a.z, c))); } \
    WARPLAB V clamp(V a, V b, V c) \
    { return make_##V(more(b.x, less(a.x, c.x)), more(b.y, less(a.y, c.y)), \
                       more(b.z, less(a.z, c.z))); } \
    WARPLAB T dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
#define WARPLAB_SIGNED_3(V) WARPLAB V operator-(V a) { return make_##V(-a.x, -a.y, -a.z); }
#define WARPLAB_FLOAT_3(V) \
    WARPLAB_COMMON_3(V, float, fminf, fmaxf) WARPLAB_OPERATOR_3(V, float, /) WARPLAB_SIGNED_3(V) \
    WARPLAB V lerp(V a, V b, float t) { return make_##V(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), \
                       a.z + t * (b.z - a.z)); } \
    WARPLAB V fabs(V a) { return make_##V(fabsf(a.x), fabsf(a.y), fabsf(a.z)); } \
    WARPLAB V floorf(V a) { return make_##V(floorf(a.x), floorf(a.y), floorf(a.z)); } \
    WARPLAB float length(V a) { return sqrtf(dot(a, a)); } \
    WARPLAB V normalize(V a) { return a * rsqrtf(dot(a, a)); }

#define WARPLAB_OPERATOR_4(V, T, op) \
    WARPLAB V operator op(V a, V b) { return make_##V(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w); } \
    WARPLAB V operator op(V a, T b) { return make_##V(a.x op b, a.y op b, a.z op b, a.w op b); } \
    WARPLAB V operator op(T a, V b) { return make_##V(a op b.x, a op b.y, a op b.z, a op b.w); } \
    WARPLAB void operator op##=(V& a, V b) { a = a op b; } \
    WARPLAB void operator op##=(V& a, T b) { a = a op b; }
#define WARPLAB_COMMON_4(V, T, less, more) \
    WARPLAB_OPERATOR_4(V, T, +) WARPLAB_OPERATOR_4(V, T, -) WARPLAB_OPERATOR_4(V, T, *) \
    WARPLAB V make_##V(T a) { return make_##V(a, a, a, a); } \
    WARPLAB V less(V a, V b) { return make_##V(less(a.x, b.x), less(a.y, b.y), less(a.z, b.z), less(a.w, b.w)); } \
    WARPLAB V more(V a, V b) { return make_##V(more(a.x, b.x), more(a.y, b.y), more(a.z, b.z), more(a.w, b.w)); } \
    WARPLAB V clamp(V a, T b, T c) \
    { return make_##V(more(b, less(a.x, c)), more(b, less(a.y, c)), \
                       more(b, less(a.z, c)), more(b, less(a.w, c))); } \
    WARPLAB V clamp(V a, V b, V c) \
    { return make_##V(more(b.x, less(a.x, c.x)), more(b.y, less(a.y, c.y)), \
                       more(b.z, less(a.z, c.z)), more(b.w, less(a.w, c.w))); } \
    WARPLAB T dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
#define WARPLAB_SIGNED_4(V) WARPLAB V operator-(V a) { return make_##V(-a.x, -a.y, -a.z, -a.w); }
#define WARPLAB_FLOAT_4(V) \
    WARPLAB_COMMON_4(V, float, fminf, fmaxf) WARPLAB_OPERATOR_4(V, float, /) WARPLAB_SIGNED_4(V) \
    WARPLAB V lerp(V a, V b, float t) { return make_##V(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), \
                       a.z + t * (b.z - a.z), a.w + t * (b.w - a.w)); } \
    WARPLAB V fabs(V a) { return make_##V(fabsf(a.x), fabsf(a.y), fabsf(a.z), fabsf(a.w)); } \
    WARPLAB V floorf(V a) { return make_##V(floorf(a.x), floorf(a.y), floorf(a.z), floorf(a.w)); } \
    WARPLAB float length(V a) { return sqrtf(dot(a, a)); } \
    WARPLAB V normalize(V a) { return a * rsqrtf(dot(a, a)); }

WARPLAB_FLOAT_2(float2)
WARPLAB_COMMON_2(int2, int, min, max) WARPLAB_SIGNED_2(int2)
WARPLAB_COMMON_2(uint2, uint, min, max)
WARPLAB_FLOAT_3(float3)
WARPLAB_COMMON_3(int3, int, min, max) WARPLAB_SIGNED_3(int3)
WARPLAB_COMMON_3(uint3, uint, min, max)
WARPLAB_FLOAT_4(float4)
WARPLAB_COMMON_4(int4, int, min, max) WARPLAB_SIGNED_4(int4)
WARPLAB_COMMON_4(uint4, uint, min, max)

WARPLAB float clamp(float x, float a, float b) { return fmaxf(a, fminf(x, b)); }
WARPLAB int clamp(int x, int a, int b) { return max(a, min(x, b)); }
WARPLAB float lerp(float a, float b, float t) { return a + t * (b - a); }
WARPLAB float2 make_float2(float3 a) { return make_float2(a.x, a.y); }
WARPLAB float3 make_float3(float2 a, float z) { return make_float3(a.x, a.y, z); }
WARPLAB float3 make_float3(float4 a) { return make_float3(a.x, a.y, a.z); }
WARPLAB float4 make_float4(float3 a) { return make_float4(a.x, a.y, a.z, 0.0f); }
WARPLAB float4 make_float4(float3 a, float w) { return make_float4(a.x, a.y, a.z, w); }
WARPLAB float3 cross(float3 a, float3 b)
{ return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
WARPLAB float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
#undef WARPLAB
