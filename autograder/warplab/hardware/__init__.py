"""Hardware: the registry of devices, architectures and prices with sources, and this process's device."""
