"""Host code is set aside whatever the order of what stands in a file, and whatever is typed."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warplab
from warplab.simt.toolchain.nvrtc import prepare

KERNEL = "__global__ void k(float* x) { x[threadIdx.x] += 1.0f; }\n"

HOST = {  # each is refused by NVRTC where it stands, with the names that it declares
    "function": ("int f(int a) { return a; }", "f"),
    "prototype": ("void g(const char *name, ...);", "g"),
    "function of a template": (
        "template <class T, int N = (3 > 2)> T h(T a) { return a < N ? a : T(); }",
        "h",
    ),
    "operator": ("std::ostream &operator<<(std::ostream &o, const A &a) { return o << a.x; }", ""),
    "variable": ("static int n = 3, *p, q[2] = {1, 2};", "n"),
    "variable with a constructor": ("std::vector<int> v(10, 3);", "v"),
    "lambda": ("auto l = [](int i) { return i; };", "l"),
    "braces in strings": ("""const char *s() { return "}}" R"x(}")x" "'"; }""", "s"),
    "braces in comments": ("int c() { /* } */ return '}'; // }\n}", "c"),
    "digit separators": ("int d() { return 1'000'000; }", "d"),
    "branches": ("#ifdef X\nint b(int a) {\n#else\nint b() {\n#endif\nreturn 1; }", "b"),
    "a branch that never is": ("#if 0\nint z( {{{\n#endif", ""),
    "launch": ("int main() { k<<<dim3(1), 32>>>(nullptr); }", "main"),
    "member functions": (
        "Matrix::Matrix(int a) : a{a}, b(a) {}\nint Matrix::size() const noexcept { return a; }",
        "size",
    ),
    "instance": ("template void host<float>(float *);", "host"),
    "namespace": ("namespace app { struct Timer { std::string name; }; void run(Timer t) {} }", "run"),
    "extern": ('extern "C" { int e(void); int e2(void) { return 1; } }', "e2"),
    "trailing type": ("auto t(int) -> std::vector<int> { return {}; }", "t"),
    "macro": ("#define CHECK(x) do { if (x) exit(1); } while (0)\nvoid m() { CHECK(3); }", "m"),
    "attribute": ("[[nodiscard]] static inline int a(void) { return 1; }", "a"),
    "explicit host": ("__host__ float w(float x) { return x; }", "w"),
    "pragma": ("void o(int n) {\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) ; }", "o"),
    "function pointers": ("void (*handler)(int) = nullptr;", "handler"),
    "using": ("using namespace cv; using std::cout;", ""),
    "main that returns behind": ("auto main(int, char **) -> int { error: return 0; }", "main"),
    "loop over kernels": ("void each() { for (auto one : {k}) one<<<1, 32>>>(nullptr); }", "each"),
    "linkage of one": ('extern "C" bool even(unsigned n) { return n % 2 == 0; }', "even"),
    "module of Python": ('PYBIND11_MODULE(NAME, m) { m.def("forward", &forward, "of rows"); }', ""),
    "types of torch": (
        "torch::Tensor forward(torch::Tensor x) { auto y = torch::empty_like(x);\n"
        "  k<<<x.size(0), 128>>>(x.data_ptr<float>()); return y; }",
        "forward",
    ),
    "branch in a body": (
        "inline\ncudaError_t checked(cudaError_t r)\n{\n#if defined(DEBUG) || defined(_DEBUG)\n"
        "  assert(r == cudaSuccess);\n#endif\n  return r;\n}",
        "checked",
    ),
    "class": (
        "class World {\n  float *now = nullptr;\npublic:\n  World(int w);\n"
        "  ~World() noexcept { cudaFree(now), k<<<1, 1>>>(now); }\n"
        "  friend std::ostream &operator<<(std::ostream &out, const World &w);\n};\n"
        "World::World(int w) { cudaMallocManaged(&now, w); }",
        "World",
    ),
    "array of structs": ('struct Option { const char *name; int value; } options[] = {{"a", 1}};', ""),
}
DEVICE = {  # each stays, with an expression that uses it and its value
    "defaulted": ("struct P { int v; P() = default; __device__ P(int a) : v(a) {} };", "P{}.v + P(3).v", 3),
    "device function": ("__device__ float twice(float a) { return 2 * a; }", "twice(3)", 6),
    "both": ("__host__ __device__ inline float half_of(float a) { return a / 2; }", "half_of(3)", 1.5),
    "macro for both": (
        "#define HD __host__ __device__\nHD float third(float a) { return a / 3; }",
        "third(3)",
        1,
    ),
    "constant": ("const int SIDE = 4, AREA = SIDE * SIDE;", "AREA", 16),
    "constexpr": ("constexpr int cube(int a) { return a * a * a; }", "cube(3)", 27),
    "enumeration": ("enum Mode { SLOW, FAST = 5 };", "FAST", 5),
    "macro": ("#define LIMIT 7\nstatic const int most = LIMIT;", "most", 7),
    "alias": ("typedef struct { int a; } Pair_t, *Pair_p; using Number = int;", "Number(sizeof(Pair_t))", 4),
    "members of both sides": (
        "struct V { float a; V() {} V(const V &) = default; __device__ V(float x) : a{x} {}\n"
        "  __device__ float get() const { return a; } void print() { std::cout << a; } int (*f)(int); };",
        "V(2).get() + sizeof(V)",
        18,
    ),
    "specialisation": (
        "template <class T> struct Of { static const int n = 1; };\n"
        "template <> struct Of<int> { static const int n = 9; };",
        "Of<int>::n",
        9,
    ),
    "type of a variable": ("struct Rgb { int r, g; } sky = {1, 2}, *p = &sky;", "sizeof(Rgb)", 8),
    "table": ("const struct { int a; float b; } rows[2] = {{1, 2.f}, {3, 4.f}};", "rows[1].b", 4),
    "namespace": (
        "namespace a { namespace b { __constant__ float c = 8; } int host() { return 1; } }",
        "a::b::c",
        8,
    ),
    "variable": ("__device__ int counter = 11;", "counter", 11),
    "from a template": ("template <class T> __device__ T zero() { return T(); }", "zero<int>()", 0),
    "a type of a type": ("struct In { int i; };\nstruct Out { In in[3]; };", "sizeof(Out)", 12),
    "enumeration of bytes": ("enum Cell : unsigned char { DEAD, ALIVE };", "sizeof(Cell) + ALIVE", 2),
    "enumeration as argument": (
        "enum class Edge { torus, walls };\ntemplate <Edge edge> __device__ int sides()\n"
        "{ if constexpr (edge == Edge::walls) return 4; else return 0; }",
        "sides<Edge::walls>()",
        4,
    ),
    "function object": (
        "struct Less { __host__ __device__ bool operator()(int a, int b) const { return a < b; } };\n"
        "template <class F> __device__ int first(int a, int b) { return F()(a, b) ? a : b; }",
        "first<Less>(5, 3)",
        3,
    ),
    "aligned struct": (
        "struct __align__(8) MD { float m, d; };\n"
        "__device__ __forceinline__ MD merge(MD a, MD b) { return MD{a.m, a.d + b.d}; }",
        "merge(MD{1, 2}, {3, 4}).d",
        6,
    ),
    "shared memory of any type": (
        "template <class T> struct Shared {\n"
        "  __device__ operator T *() { extern __shared__ int memory[]; return (T *)memory; } };",
        "sizeof(Shared<float>)",
        1,
    ),
    "std": ("using std::max;", "std::max(1, 2) + std::sqrt(16.f) + std::pow(2, 3)", 14),
    "integers of C": ("typedef uint32_t word;", "word(-1) == UINT_MAX", 1),
    "limits": ("", "std::numeric_limits<short>::max()", 32767),
}


@pytest.mark.parametrize("kind", HOST)
def test_host_code_is_set_aside(kind):
    text, name = HOST[kind]
    source = f"#include <iostream>\n{text}\n{KERNEL}"
    x = np.zeros(32, np.float32)
    warplab.cuda_kernel(source, "k")[1, 32](x)
    assert (x == 1).all()
    prepared = prepare(source, "k")
    assert [at for at, c in enumerate(prepared.text) if c == "\n"] != [] and prepared.text.count(
        "\n"
    ) == source.count("\n")
    assert not name or name in dict(prepared.host)


@pytest.mark.parametrize("kind", DEVICE)
@pytest.mark.parametrize("host", ["", "int main() { return 0; }\n"], ids=["alone", "with host code"])
def test_what_a_kernel_uses_stays(kind, host):
    text, expression, value = DEVICE[kind]
    x = np.zeros(1, np.float32)
    warplab.cuda_kernel(f"{host}{text}\n__global__ void k(float* x) {{ x[0] = {expression}; }}\n", "k")[1, 1](
        x
    )
    assert x[0] == value


@settings(max_examples=25, deadline=None)
@given(st.permutations([*HOST, *DEVICE]), st.integers(1, 20))
def test_host_and_device_code_may_stand_in_any_order(order, many):
    """What stays has its own lines and columns; what goes is blank; the host's names are known."""
    chosen = [(kind, HOST.get(kind) or DEVICE[kind]) for kind in order[:many]]
    source = "".join(f"{entry[0]}\n" for _, entry in chosen) + KERNEL
    prepared = prepare(source, "k")
    given_lines, left = source.split("\n"), prepared.text.split("\n")
    assert len(given_lines) == len(left)
    for before, after in zip(given_lines, left):
        kept = after.replace("namespace cv {} ", "").replace("__host__ __device__ constexpr", "constexpr")
        assert (
            kept.strip() == ""
            or kept.rstrip() == before.rstrip()
            or all(a in (b, " ") for a, b in zip(kept, before))
        )
    kinds = {kind for kind, entry in chosen if len(entry) == 2}
    assert {HOST[kind][1] for kind in kinds} - {""} <= dict(prepared.host).keys()


FILES = [path.read_text() for path in sorted((Path(__file__).parent / "cu").glob("*.cu"))]
PIECES = "{ } ( ) < > ; \" ' /* */ = , :: template< operator struct enum using typedef namespace".split() + [
    "\n#if 0\n",
    "\n#else\n",
    "\n#endif\n",
    'R"(',
    'extern "C" {',
    "\n#define X {\n",
]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_source_that_is_no_cpp_is_left_to_the_compiler(data):
    """Whatever is typed, nothing of ours breaks, and lines stay where they are."""
    text = data.draw(st.sampled_from(FILES))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.sampled_from([0, 1, 2, 5, 40, len(text)]))
        text = text[:at] + data.draw(st.sampled_from(["", *PIECES])) + text[at + gone :]
    assert prepare(text, "k").text.count("\n") == text.count("\n")
