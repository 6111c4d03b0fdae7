"""One function, two drawings: for a column of the book, and for a phone.

A drawing that is only scaled down has letters that nobody can read on a phone. So a figure's function is
called twice; `new` asks here which of the two it draws for, and a function whose layout must differ asks
`on_phone()` itself.
"""

import functools
from contextvars import ContextVar

COLUMN, PHONE = 7.6, 4.2  # inches: the book's column (730 CSS pixels), and what fits a phone (403)
_phone = ContextVar("phone", default=False)


def on_phone() -> bool:
    """Whether the drawing that is being made is the narrow one."""
    return _phone.get()


def responsive(draw):
    """Have `draw`, a function that returns a Figure, draw it a second time for a phone.

    The figure takes the function's name, by which a page can refer to it. Arguments are used twice: no
    generators.
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
