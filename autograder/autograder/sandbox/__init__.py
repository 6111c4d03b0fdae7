"""Where other people's code runs: launchers start a process behind walls, workers are what runs in it, messages what it says.

`Unsafe` limits time, memory and files, and nothing else: it keeps honest mistakes apart, not attacks. Every result carries
its launcher's `isolation` text.
"""

from autograder.sandbox.forked import SelfSandbox, Unsafe
from autograder.sandbox.launch import Launcher
from autograder.sandbox.types import Limits

__all__ = ["Launcher", "Limits", "SelfSandbox", "Unsafe"]
