"""The engine's device memory, which kernels of all languages share."""

from warplab.simt.engine.address_space import AddressSpace

SPACE = AddressSpace()
