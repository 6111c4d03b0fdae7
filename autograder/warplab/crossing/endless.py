"""A loop without end, stopped in a notebook: a sentence about it, where the kernel would answer no more."""

import contextlib
import signal
import threading
import time

MOST_S = 30  # of processor time of the main thread in one case; a right answer takes a second or two


class Endless(BaseException):
    """It has computed for too long. No Exception, so that a student's `except Exception` lets it through."""


@contextlib.contextmanager
def stopped_after(seconds=MOST_S):
    """Raises Endless in the block once this thread has computed that long. Waiting does not count, nor what
    a library's own threads do.

    Does nothing outside the main thread, and where the system has no such timer.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    began = time.thread_time()

    def stop(_number, _frame):
        left = seconds - (time.thread_time() - began)
        if left > 0:  # the timer runs for all threads together
            signal.setitimer(signal.ITIMER_VIRTUAL, max(left, 0.01))
            return
        raise Endless(f"stopped after {seconds:g} s of computing: is there a loop that does not end?")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
