"""The executor: the process in which a submission's kernels run.

executor    from PTX and arrays to arrays and counters
"""
