"""torch without CUDA, told of the engine: the only file that replaces anything of torch's.

What is replaced, as soon as torch has been imported (``tests/simt/test_torch.py`` is the canary):
- ``torch.cuda._lazy_init``, which everything that wants CUDA calls first: its error also says what to write.
- what else only CUDA has (``ONLY_CUDA``): streams, events, pinned memory ... say that the line is to be left
  out.
- what torch.compile does with a launch: nothing (``torch._dynamo.disable``).
- ``torch.as_tensor`` makes a CPU tensor of a device array of the engine, on the same memory. On CUDA it makes
  a CUDA tensor of a device array.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys

from warplab.simt.frontends.torch_tensors import tensor_of

INSTEAD = (
    "warplab: this computer has no CUDA. Write device=warplab.torch_device, which is 'cuda' where there is a "
    "GPU and 'cpu' here, where kernels run on the SIMT engine."
)
LAUNCHES: list[tuple[type, str]] = []  # methods that launch a kernel or make ready for it
LEAVE_OUT = (
    "this computer has no CUDA\nwarplab: on the SIMT engine a launch has ended when the next line runs, and "
    "its memory is this computer's. Leave the line out, or put it behind `if torch.cuda.is_available():`."
)
ONLY_CUDA = (  # where torch asks for CUDA, mostly in words of its own insides
    "cuda.synchronize cuda.set_device cuda.current_stream cuda.default_stream cuda.Event.__new__ "
    "cuda.Stream.__new__ cuda.CUDAGraph.__new__ cuda.device.__enter__ cuda.memory_summary "
    "cuda.reset_peak_memory_stats cuda.mem_get_info cuda.nvtx.range_push cuda.nvtx.range_pop "
    "Tensor.pin_memory"
)


def install(on_host) -> None:
    """Prepare torch, now or when it is imported. on_host(value): a device array's memory as a NumPy array.

    It gives None of anything else.
    """
    _when_imported("torch", lambda torch: _prepare(torch, on_host))
    _when_imported("torch._dynamo", _leave_out)


def _leave_out(dynamo) -> None:
    """torch.compile goes around a launch: it would take the engine's own NumPy for the reader's."""
    for owner, name in LAUNCHES:
        setattr(owner, name, dynamo.disable(getattr(owner, name), reason="a kernel is launched"))


def _when_imported(name: str, prepare) -> None:
    """Call prepare(module) of the module of that name: now, or when it is imported."""
    if name in sys.modules:
        prepare(sys.modules[name])
    else:
        sys.meta_path.insert(0, _WhenImported(name, prepare))


class _WhenImported:
    """An import hook that lets a module be imported as ever and then prepares it."""

    def __init__(self, name, prepare):
        self.name, self.prepare, self.looking = name, prepare, False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.looking:
            return None
        self.looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking = False
        if spec is not None and spec.loader is not None:
            plain = spec.loader.exec_module

            def exec_module(module):
                plain(module)
                self.prepare(module)

            spec.loader.exec_module = exec_module
        return spec


def _prepare(torch, on_host) -> None:
    start, as_tensor = torch.cuda._lazy_init, torch.as_tensor
    if hasattr(start, "__wrapped__"):
        return

    @functools.wraps(start)
    def lazy_init():
        try:
            return start()
        except (AssertionError, RuntimeError) as error:
            error.args = (f"{error}\n{INSTEAD}",)
            raise

    @functools.wraps(as_tensor)
    def of_device_arrays_too(data, *args, **kwargs):
        array = on_host(data)
        return as_tensor(data if array is None else tensor_of(array), *args, **kwargs)

    # torch's own list of what makes tensors, for `with torch.device(...)`: it is to hold the original
    importlib.import_module("torch.utils._device")._device_constructors()
    torch.cuda._lazy_init, torch.as_tensor = lazy_init, of_device_arrays_too
    for path in ONLY_CUDA.split():
        *owners, name = path.split(".")
        owner = functools.reduce(getattr, owners, torch)
        setattr(owner, name, _told(getattr(owner, name), torch, "torch." + path.removesuffix(".__new__")))


def _told(function, torch, name):
    """The function, whose error says what to do where there is no CUDA."""

    @functools.wraps(function)
    def told(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (AssertionError, RuntimeError, AttributeError, KeyError) as error:
            if torch.cuda.is_available():
                raise
            kind = AssertionError if isinstance(error, AssertionError) else RuntimeError
            raise kind(f"{name.removesuffix('.__enter__')}: {LEAVE_OUT}") from None

    return told
