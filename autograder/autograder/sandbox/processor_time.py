"""The processor time that the processes of a jail have used, including ended ones."""

import os

TICKS = os.sysconf("SC_CLK_TCK")


class ProcessorTime:
    """The processor time of all processes of a pid namespace. proc: its /proc, as seen by this process.

    A living process counts by itself, an ended one in the total of the parent that waited for it (process 1
    for orphans). One that nobody has waited for counts with its value when it was last seen.
    """

    def __init__(self, proc: str) -> None:
        self.proc = proc
        self._unwaited = 0
        # {(pid, start time): (ticks in all, ticks of children that it waited for)}
        self._seen: dict[tuple[str, int], tuple[int, int]] = {}

    def seconds(self) -> float:
        """Seconds of user and system time, up to now."""
        seen: dict[tuple[str, int], tuple[int, int]] = {}
        try:
            names = os.listdir(self.proc)
        except OSError:  # the namespace has just ended
            names = []
        for name in filter(str.isdigit, names):
            try:
                with open(f"{self.proc}/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:  # the process has just ended
                continue
            ticks = list(map(int, fields[11:15]))
            seen[name, int(fields[19])] = sum(ticks), sum(ticks[2:])
        ended = sum(ticks for process, (ticks, _) in self._seen.items() if process not in seen)
        known = {process: waited for process, (_, waited) in self._seen.items()}
        waited = sum(now - known.get(process, 0) for process, (_, now) in seen.items())
        self._unwaited += max(0, ended - waited)
        self._seen = seen
        return (self._unwaited + sum(ticks for ticks, _ in seen.values())) / TICKS
