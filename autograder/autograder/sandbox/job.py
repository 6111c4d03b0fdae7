"""One process to start, as the grader orders it from the warm parent."""

from dataclasses import dataclass

from autograder.sandbox.limits import Limits


@dataclass(frozen=True)
class JailedJob:
    """One process to start. module: that of its role. student: the uid of the jail's user, inside.

    jailed: behind walls, or with limits alone. gpu: whether NVIDIA's devices are passed in, where the machine
    has them.
    folder: has home/, where it works. environment: all of it.
    imports: modules that the warm parent should have, of launcher.OFTEN.
    """

    module: str
    jailed: bool
    limits: Limits
    folder: str
    environment: dict[str, str]
    gpu: bool
    imports: tuple[str, ...] = ()
    student: int = 1000
