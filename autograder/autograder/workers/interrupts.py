"""Delays Ctrl-C to points between two pieces of work, so that it interrupts no transaction or remote call."""

import contextlib
import signal
import threading
from collections.abc import Generator

_asked = threading.Event()


@contextlib.contextmanager
def deferred_interrupts() -> Generator[None, None, None]:
    """Delay Ctrl-C in the block until the next stop_if_asked(); a second Ctrl-C is raised at once.

    It has no effect outside the main thread, and where SIGINT has another handler than Python's own.
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
    """Raise KeyboardInterrupt if Ctrl-C was pressed; to be called between two pieces of work."""
    if _asked.is_set():
        _asked.clear()
        raise KeyboardInterrupt
