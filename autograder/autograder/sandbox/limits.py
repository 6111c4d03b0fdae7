"""The limits of one submission."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Limits:
    """What all processes of one submission together may use, over all attempts, crossings and ranks.

    Wall-clock time in seconds: step_seconds for one cell, or one task in one process. total_seconds from the
    moment when the first process is up, including the starts and ends of further ones. start_seconds for one
    process to start. timed_seconds for one timed row, in addition, from its turn on the GPU on.
    processor_seconds: user and system time.
    In MiB: memory_mib at one time, file_mib for one file, disk_mib for all files, message_mib for messages to
    the judge. messages: their number. A step may use a quarter of both.
    processes: at one time, threads included; each may have open_files descriptors.
    Without a sandbox, memory and processor time are limited for each single process, and the number of
    processes and the sum of files are not limited.
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
        """The default limits, but with `step_seconds` for a step and ten times as many in all."""
        return cls(step_seconds, 10 * step_seconds, 10 * step_seconds)

    def shared_by(self, size: int) -> "Limits":
        """The limits of one of `size` processes that run at the same time."""
        return replace(
            self,
            memory_mib=self.memory_mib // size,
            disk_mib=self.disk_mib // size,
            processes=self.processes // size,
        )

    def described(self) -> dict[str, str]:
        """{what is limited: the limit}, in words."""
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
