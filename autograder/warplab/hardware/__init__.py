"""Hardware facts: the registry of devices and architectures with sources and prices,
and the device of this process.
"""
