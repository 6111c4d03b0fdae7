"""Ctrl-C between two pieces of work: no transaction and no call of the scheduler's is cut in the middle."""

import contextlib
import signal
import threading
from collections.abc import Generator

_asked = threading.Event()


@contextlib.contextmanager
def kept() -> Generator[None, None, None]:
    """Ctrl-C in here waits for the next `stop_if_asked`; a second one is raised where it comes.

    Without effect outside the main thread, and where Ctrl-C is ignored or somebody else's.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def keep(*_: object) -> None:
        if _asked.is_set():
            raise KeyboardInterrupt
        _asked.set()

    signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _asked.clear()


def stop_if_asked() -> None:
    """Between two pieces of work. Raises KeyboardInterrupt if one was kept."""
    if _asked.is_set():
        _asked.clear()
        raise KeyboardInterrupt
