"""Where other people's code runs: a process behind walls, whose messages alone come out.

choose, launcher, forked    which walls stand here, and starting a process behind them
zygote, warm                            the parent that has imported everything
job, keeper, jail, limits               the life of one job, and what it may use
view, landlock, seccomp, cgroup, linux  the walls; system_calls.yml lists what seccomp allows
held_memory                             what stands in for a cgroup's count of memory
messages                                what grader and process say to each other
student, probe                          roles: the student's code; attempts to break out

`Unsafe` limits time, memory and files, and nothing else: it keeps honest mistakes apart, not attacks. Every
result carries its launcher's `isolation` text.
"""

from autograder.sandbox.forked import Launcher, SelfSandbox, Unsafe
from autograder.sandbox.limits import Limits

__all__ = ["Launcher", "Limits", "SelfSandbox", "Unsafe"]
