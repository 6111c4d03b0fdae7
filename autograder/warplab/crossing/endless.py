"""Stops code that computes too long, such as an endless loop, with a sentence about it.

Without this a notebook's kernel would hang.
"""

import contextlib
import ctypes
import os
import re
import signal
import threading
import time
from pathlib import Path

from warplab.simt.errors import OutOfTime

MOST_S = 10  # seconds of the main thread's processor time for a cell, or a case (unless its task says other)


ENDLESS = re.compile("no progress|stopped after")  # found in the errors of endless or too long loops


class Endless(OutOfTime):
    """Code has computed for too long. Not an Exception, so `except Exception` does not catch it."""

    def __str__(self) -> str:
        (seconds,) = self.args or (MOST_S,)  # join_all raises the class, without arguments
        ask = "is there a loop that does not end, or far more work than is asked for?"
        return f"stopped after {seconds:g} s of computing{self.where}: {ask}"


@contextlib.contextmanager
def stopped_after(seconds: float = MOST_S):
    """Raise Endless in the block once this thread has used that much processor time.

    Waiting and other threads do not count. It does nothing outside the main thread, within another such
    block, and where the system has no such timer.
    """
    here = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not here or signal.getitimer(signal.ITIMER_VIRTUAL)[0]:
        yield
        return

    began = time.thread_time()

    def stop(_number, _frame):
        if (left := seconds - (time.thread_time() - began)) > 0:  # the timer counts all threads
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
    """Wait until all threads have ended; raise Endless in one that has used most_s of processor time.

    It needs /proc to know a thread's time; elsewhere no thread is stopped.
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
    """Seconds of processor time that a thread has used; 0 where that is not known."""
    try:
        fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
