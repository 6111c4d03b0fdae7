"""The description of one process that the grader sends to the warm parent."""

from dataclasses import dataclass

from autograder.sandbox.limits import Limits


@dataclass(frozen=True)
class JailedJob:
    """One process to start. module: its role's. jailed: False for limits only, without the sandbox.

    folder: contains home/, the working folder. environment: the complete environment.
    gpu: whether NVIDIA's devices are passed in, where the machine has them. imports: modules of
    launcher.OFTEN that the warm parent should import first. student: the uid of the user inside the sandbox.
    """

    module: str
    jailed: bool
    limits: Limits
    folder: str
    environment: dict[str, str]
    gpu: bool
    imports: tuple[str, ...] = ()
    student: int = 1000
