"""Managed memory, which has the same address on the host and in kernels: it is memory of this process, at an
address where a slot of the address space begins.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from warplab.simt.engine.address_space import REGION_SHIFT

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
NORESERVE = 0x4000  # MAP_NORESERVE of Linux: pages get memory when they are first written


def reserve(size: int) -> tuple[int, np.ndarray]:
    """(address, bytes) of new memory at a multiple of a slot's size. It stays mapped until the process ends.

    Raises MemoryError if the system refuses the address space.
    """
    slot, page = 1 << REGION_SHIFT, mmap.PAGESIZE
    start = _libc.mmap(
        None,
        2 * slot,
        mmap.PROT_READ | mmap.PROT_WRITE,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE,
        -1,
        0,
    )
    if start in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(f"no address space for a managed array of {size} bytes: errno {ctypes.get_errno()}")
    base = -(-start // slot) * slot
    end = base + max(page, -(-size // page) * page)
    if base > start:
        _libc.munmap(start, base - start)
    _libc.munmap(end, start + 2 * slot - end)
    return base, np.ctypeslib.as_array((ctypes.c_uint8 * max(size, 1)).from_address(base))
