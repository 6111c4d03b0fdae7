"""What other people's code may use: one budget a submission."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Limits:
    """What one submission may use in all its processes together: of all attempts, crossings and ranks.

    Seconds are of wall-clock time. step_seconds: for one cell, or one task in one process. total_seconds:
    from the moment when its first process is up; further starts, and the ends of processes, count.
    processor_seconds: of user and system time. start_seconds: for one process to come up. timed_seconds: for
    one timed row, on top, from the moment when it has its turn on the GPU.
    In MiB: memory_mib of what runs at one time, file_mib of one file, disk_mib of all files, message_mib of
    messages to the judge.
    messages: their number. A step may use a quarter of both.
    processes: at one time, threads included; each may have open_files descriptors.
    Without a sandbox memory and processor time are those of each process, and nothing limits the processes
    and the sum of the files.
    """

    step_seconds: float = 30.0
    total_seconds: float = 300.0
    processor_seconds: float = 300.0
    start_seconds: float = 120.0
    timed_seconds: float = 120.0
    memory_mib: int = 6144
    file_mib: int = 512
    disk_mib: int = 1024
    processes: int = 128
    open_files: int = 1024
    message_mib: int = 128
    messages: int = 1_000_000

    @classmethod
    def of(cls, step_seconds: float) -> "Limits":
        """The limits of a run with so many seconds for a step: ten times as many in all."""
        return cls(step_seconds, 10 * step_seconds, 10 * step_seconds)

    def shared_by(self, size: int) -> "Limits":
        """The part of one of `size` processes that run at the same time."""
        return replace(
            self,
            memory_mib=self.memory_mib // size,
            disk_mib=self.disk_mib // size,
            processes=self.processes // size,
        )

    def described(self) -> dict[str, str]:
        """{what: how much of it}, for people."""
        return {
            "one cell or one task": f"{self.step_seconds:g} s",
            "everything, wall-clock": f"{self.total_seconds:g} s",
            "everything, processor time": f"{self.processor_seconds:g} s",
            "each timed row, on top": f"{self.timed_seconds:g} s",
            "memory at one time": f"{self.memory_mib:,} MiB",
            "files": f"{self.disk_mib:,} MiB, one of them {self.file_mib:,} MiB",
            "processes and threads at one time": f"{self.processes:,}",
            "open files of a process": f"{self.open_files:,}",
            "messages to the judge": f"{self.messages:,}, {self.message_mib:,} MiB together",
        }
