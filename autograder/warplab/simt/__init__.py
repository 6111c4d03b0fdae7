"""The SIMT engine: compiled kernels run on the CPU, instruction by instruction, and are checked and counted.

profile.py   `warplab.profile`, the counts of one launch    frontends/   one file a language; launches
trace.py     `warplab.step`, one warp, step by step         machine_code.py  source, PTX and SASS side by side
counters/    observers that count                           sanitizer/   observers that refuse or warn
engine/      executes PTX: the table of instructions, the machine, its memories
ptx/         PTX as data                                    toolchain/   NVIDIA's compilers
abi.py       parameters in numba's and in C's convention    errors.py    the errors of a launch
observer.py  the events that counters and checks receive    watched.py   one launch under observers
"""
