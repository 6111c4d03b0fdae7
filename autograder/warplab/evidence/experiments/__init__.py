"""The experiments themselves, a module a theme; their kernels stand in kernels.py.
evidence/catalogue.py lists them.
"""
