"""The engine's device memory: what ``cuda.to_device`` allocates and both kinds of kernels launch on."""

from warplab.simt.engine.address_space import AddressSpace

SPACE = AddressSpace()
