"""What else is made of Triton's kernels: machine code, code for other targets, torch.compile's graphs."""

import runpy
import subprocess
import sys

import pytest
import torch

import warplab
from warplab.simt.frontends import triton_hook
from warplab.simt.frontends.launch import run
from warplab.simt.toolchain.ptxas import find

triton = pytest.importorskip("triton", reason="Triton's wheels are for Linux")
from test_triton import double, vector_add  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.skipif(find("nvdisasm") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("form", [lambda k: k, lambda k: k[(4,)]], ids=["kernel", "kernel[grid]"])
def test_a_line_stands_beside_its_ptx_and_its_machine_code(form):
    x, out = torch.rand(1024), torch.zeros(1024)
    code = warplab.machine_code(form(vector_add), x, x, out, 1024, BLOCK=256, num_warps=2)
    line = next(line for line in code.lines if "tl.store" in line.source)
    ptx, sass = " ".join(line.ptx), " ".join(line.sass)
    assert ptx.count("ld.global") == sass.count("LDG") == 2
    assert ptx.count("st.global") == sass.count("STG") == 1
    assert (code.kernel, code.arch, out.any()) == ("vector_add", "sm_80", False)


def test_lines_are_those_of_the_file_that_runs_though_another_had_the_same_text_before(tmp_path, monkeypatch):
    """Triton's cache on disk knows a kernel by its text; a notebook's cell is in a new file each session."""
    text = (
        "import torch, triton, triton.language as tl, warplab\n"
        "@triton.jit\ndef zero(x, BLOCK: tl.constexpr):\n"
        "    tl.store(x + tl.arange(0, BLOCK), 0.0)\n"
        "lines = warplab.machine_code(zero, torch.rand(64), BLOCK=64).lines\n"
        "print([line.source for line in lines])\n"
    )
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    yesterday, today = (tmp_path / day / "cell.py" for day in ("yesterday", "today"))
    for file in (yesterday, today):
        file.parent.mkdir()
        file.write_text(text)
    before = [line.source for line in runpy.run_path(str(yesterday))["lines"]]
    yesterday.unlink()
    ran = subprocess.run([sys.executable, today], capture_output=True, text=True, check=True)
    assert list((tmp_path / "cache").iterdir()) and any("tl.store" in line for line in before)
    assert ran.stdout == f"{before}\n"


def test_machine_code_of_an_autotuned_kernel_is_that_of_its_first_configuration():
    tuned = triton.autotune([triton.Config({"BLOCK": size}) for size in (64, 128)], key=["n"])(vector_add)
    x = torch.rand(1000)
    first = warplab.machine_code(vector_add, x, x, x, 1000, BLOCK=64)
    assert warplab.machine_code(tuned, x, x, x, 1000).lines == first.lines


def test_what_machine_code_of_triton_cannot_have():
    x = torch.rand(128)
    with pytest.raises(ValueError, match="compiled for sm_80 here, and not for sm_90"):
        warplab.machine_code(double, x, BLOCK=128, arch="sm_90")
    with pytest.raises(TypeError, match="BLOCK=...: only Triton's kernels"):
        warplab.machine_code(warplab.cuda_kernel('extern "C" __global__ void f() {}', "f"), BLOCK=1)


def test_who_compiles_for_another_target_gets_what_triton_makes_for_it():
    """Only what is launched here ends as PTX."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(double, {"x": "*fp32", "BLOCK": "constexpr"}, constexprs={(1,): 128})
    made = {}
    for name, target in (("cubin", GPUTarget("cuda", 90, 32)), ("hsaco", GPUTarget("hip", "gfx942", 64))):
        made[name] = triton.compile(source, target=target).asm
        assert made[name][name].startswith(b"\x7fELF")


@pytest.mark.full
@pytest.mark.parametrize("backend", ["cpp", "triton"])
def test_torch_compile_takes_a_launch_along(backend):
    """Before, torch traced into the engine: "data type 'u4' not understood"."""

    def twice(x):
        out = torch.empty_like(x)
        vector_add[(4,)](x, x, out, x.numel(), BLOCK=256)
        return out + 1

    torch.compiler.reset()
    x = torch.rand(1000)
    with torch._inductor.config.patch(cpu_backend=backend, compile_threads=1):
        assert torch.equal(torch.compile(twice, fullgraph=True)(x), 2 * x + 1)


@pytest.mark.full
def test_the_triton_that_torch_compile_writes_runs_on_the_engine(monkeypatch):
    seen = []

    def noted(program, *rest):
        seen.append(program.name)
        return run(program, *rest)

    monkeypatch.setattr(triton_hook, "run", noted)
    torch.compiler.reset()
    x = torch.randn(20, 100, requires_grad=True)
    with torch._inductor.config.patch(cpu_backend="triton", compile_threads=1, force_disable_caches=True):
        torch.compile(lambda x: torch.softmax(x, 1).square().sum())(x).backward()
    found, x.grad = x.grad, None
    torch.softmax(x, 1).square().sum().backward()
    torch.testing.assert_close(found, x.grad)
    assert seen and all(name.startswith("triton_") for name in seen)
