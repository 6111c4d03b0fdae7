"""What a process of other people's code may use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Time, memory, files and processes of one job.

    Seconds are of wall-clock time: for one step, and for one process as a whole. In MiB: the memory of all
    its processes, one file, and all files. Without a sandbox memory is that of each process, and nothing
    limits the processes and the sum of the files.
    """

    step_seconds: float = 30.0
    total_seconds: float = 300.0
    start_seconds: float = 120.0
    memory_mib: int = 6144
    file_mib: int = 512
    disk_mib: int = 1024
    processes: int = 128
    open_files: int = 1024
