"""torch without CUDA, told of the engine: the only file that replaces anything of torch's.

What is replaced, as soon as torch has been imported (``tests/simt/test_torch.py`` is the canary):
- ``torch.cuda._lazy_init``, which everything that wants CUDA calls first: its error also says what to write.
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


def install(on_host) -> None:
    """Prepare torch, now or when it is imported. on_host(value): a device array's memory as a NumPy array.

    It gives None of anything else.
    """
    if "torch" in sys.modules:
        _prepare(sys.modules["torch"], on_host)
    else:
        sys.meta_path.insert(0, _WhenImported(on_host))


class _WhenImported:
    """An import hook that lets torch be imported as ever and then prepares it."""

    def __init__(self, on_host):
        self.on_host, self.looking = on_host, False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.looking:
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
                _prepare(module, self.on_host)

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
