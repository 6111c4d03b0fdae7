"""The machine: compiled kernels run on the CPU, instruction by instruction, are checked and counted.

profile.py   `warplab.profile`, the counts of one launch    frontends/   each language, and a launch
trace.py     `warplab.step`, one warp, step by step
counters/    who counts                                     sanitizer/   who refuses
engine/      what runs PTX: the table of instructions, the machine, its memories
ptx/         PTX as data                                    toolchain/   NVIDIA's compilers
abi.py       parameters in numba's and in C's convention    errors.py    what can go wrong in a launch
observer.py  what the machine tells counters and checks
"""
