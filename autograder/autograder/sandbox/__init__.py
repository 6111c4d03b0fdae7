"""The sandbox in which students' code runs: a process that can only send messages to the grader.

choose, launcher, forked                whether the sandbox works here, and starting a process in it
zygote, warm                            the warm parent, from which jobs are forked with all imports done
job, keeper, jail, limits               the life of one job, and what it may use
view, landlock, seccomp, cgroup, linux  the protections; system_calls.yml lists what seccomp allows
held_memory, processor_time, share      memory, processor time and fair shares where no cgroup counts them
messages                                the protocol between grader and process
student, probe                          roles: runs the student's code; attempts to break out

`Unsafe` limits time, memory and file size only: enough against honest mistakes, not against attacks. Every
result carries its launcher's `isolation` text.
"""

from autograder.sandbox.forked import Launcher, SelfSandbox, Unsafe
from autograder.sandbox.limits import Limits

__all__ = ["Launcher", "Limits", "SelfSandbox", "Unsafe"]
