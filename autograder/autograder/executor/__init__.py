"""The executor: the process in which a submission's kernels run, from PTX and arrays to arrays and counters."""
