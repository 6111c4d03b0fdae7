"""Experiments: what the book measures, how, and where the results are kept.

registry.py   the list; a theme's experiments are in a module of its own, their kernels in kernels
timing.py     the clocks        record.py   what is written        machine.py   the device it ran on
limits.py     what no measurement can exceed      __main__.py   `make record`
"""
