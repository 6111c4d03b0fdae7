"""A loop without end, stopped in a notebook: a sentence about it, where the kernel would answer no more."""

import contextlib
import ctypes
import os
import re
import signal
import threading
import time
from pathlib import Path

from warplab.simt.errors import OutOfTime

MOST_S = 10  # of processor time of the main thread in one cell, or in one case of a task that states no other


ENDLESS = re.compile("no progress|stopped after")  # in an error: a loop without end, or too long


class Endless(OutOfTime):
    """It has computed for too long. No Exception, so that a student's `except Exception` lets it through."""

    def __str__(self) -> str:
        (seconds,) = self.args or (MOST_S,)  # none where join_all raises it
        ask = "is there a loop that does not end, or far more work than is asked for?"
        return f"stopped after {seconds:g} s of computing{self.where}: {ask}"


@contextlib.contextmanager
def stopped_after(seconds: float = MOST_S):
    """Raises Endless in the block once this thread has computed that long. Waiting does not count, nor what
    a library's own threads do.

    Does nothing outside the main thread, within another such block, and where the system has no such timer.
    """
    here = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not here or signal.getitimer(signal.ITIMER_VIRTUAL)[0]:
        yield
        return

    began = time.thread_time()

    def stop(_number, _frame):
        if (left := seconds - (time.thread_time() - began)) > 0:  # the timer runs for all threads together
            signal.setitimer(signal.ITIMER_VIRTUAL, max(left, 0.01))
            return
        raise Endless(seconds)

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def join_all(threads, most_s=MOST_S):
    """Wait until all these threads have ended. Endless is raised, once, in one that has computed for so long.

    Where there is no /proc to tell a thread's time, none is stopped.
    """
    told = set()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.5)
            for one in threads:
                if one not in told and one.is_alive() and _computed(one) > most_s:
                    told.add(one)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(one.ident), ctypes.py_object(Endless)
                    )


def _computed(thread):
    """Seconds that a thread has computed, its waiting not counted; 0 where nobody tells."""
    try:
        fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
