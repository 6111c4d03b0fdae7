"""Draws each figure twice: for a column of the book, and for a phone.

Text in a drawing that is only scaled down is too small on a phone. So a figure's function is called twice.
`new` chooses the size for the present call, and a function whose layout must differ asks `on_phone()`.
"""

import functools
from contextvars import ContextVar

COLUMN, PHONE = 7.6, 4.2  # inches: the book's column (730 CSS pixels), and what fits a phone (403)
_phone = ContextVar("phone", default=False)


def on_phone() -> bool:
    """Whether the present call draws for a phone."""
    return _phone.get()


def responsive(draw):
    """Decorator of a function that returns a Figure: calls it a second time for a phone.

    The figure gets the function's name, by which pages refer to it. Arguments must not be generators, as they
    are used twice.
    """

    @functools.wraps(draw)
    def both(*args, **options):
        figure = draw(*args, **options)
        token = _phone.set(True)
        try:
            figure.narrow = draw(*args, **options)
        finally:
            _phone.reset(token)
        figure.name = figure.name or draw.__name__
        return figure

    return both
