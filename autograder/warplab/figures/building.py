"""The book's running picture as a plan: the professor's office, the desk, the door, the hall with its table,
the corridor to the next hall. A chapter's opener is this plan with the chapter's place highlighted.
"""

from html import escape

from warplab.plots import PALETTE, Figure
from warplab.plots.figure import PAGE_FONT

WIDTH, HEIGHT = 760, 124
ROWS, COLUMNS, STEP = 6, 17, 17  # of the hall's students
HALL, TABLE = (272, 12), (502, 46, 48, 32)
PARTS = ("blue", "green", "orange")  # computing, the machine, using it: four chapters each, the last the rest
FAINT, ROOM = 0.3, 0.5  # opacity of places that are not highlighted, of walls


def part(chapter):
    """The colour of the part of the book that a chapter belongs to."""
    return PARTS[min((chapter - 1) // 4, len(PARTS) - 1)]


def opener(chapter):
    """The SVG of a chapter's opener, a decoration without words; only the plan if LIT has no entry for it."""
    colour = PALETTE[part(chapter)]
    lit, own = LIT.get(chapter, (lambda colour: [], ""))
    light = f'<g fill="{colour}" stroke="none">{"".join(lit(colour))}</g>'
    desk, hall = _desk(own != "sheets"), _hall(own != "students")
    plan = _office() + desk + _door() + hall + _table() + _corridor() + _next_hall()
    return _svg(f"0 0 {WIDTH} {HEIGHT}", plan + light, 'aria-hidden="true"')


ROOMS = (  # the words above and below a room, and its middle
    ("the professor", "a CPU core", 47),
    ("the desk", "VRAM", 174),
    ("the door", "bandwidth", 248),
    ("the hall", "a GPU: thousands of sums at once", 419),
    ("the next hall", "another GPU", 700),
)


def plan(alt, caption):
    """The building with its rooms named; on a phone without the next hall, in two parts."""
    figure = Figure(None, _labelled(alt, ((-4, WIDTH + 8),), 12.5), alt, caption)
    figure.narrow = Figure(None, _labelled(alt, ((-8, 300), (266, 310)), 12.5), alt, None)
    figure.name = "plan"
    return figure


def _labelled(alt, cuts, size):
    """The plan in colour, cut into pieces that are put one above the other. cuts: [(left edge, width)]."""
    blue, gold, orange = (PALETTE[name] for name in ("blue", "gold", "orange"))
    rooms = (
        _office()
        + _dot(47, 62, 17, f'fill="{blue}"')
        + _desk(False)
        + _door()
        + _hall(False)
        + _table()
        + _corridor()
        + _next_hall()
        + f'<g fill="{gold}">'
        + "".join(_rect(x, y, 17, 20) for x, y in _sheets())
        + f'</g><g fill="{orange}">'
        + "".join(_rect(233 + 11 * i, 51, 8, 22) for i in range(4))
        + f'</g><g fill="{blue}">'
        + "".join(_dot(x, y, 4.2) for x, y, *_ in _students())
        + "</g>"
    )
    across, high = max(width for _, width in cuts), 164
    parts = []
    for row, (left, width) in enumerate(cuts):
        named = [(name, words, at) for name, words, at in ROOMS if left <= at < left + width]
        text = "".join(_words(name, words, at, size) for name, words, at in named)
        parts.append(
            f'<svg x="{(across - width) / 2:g}" y="{high * row}" width="{width}" height="{high}" '
            f'viewBox="{left} -20 {width} {high}">{rooms}{text}</svg>'
        )
    wide = "730" if len(cuts) == 1 else "420"
    style = "max-width: 100%; height: auto; display: block"
    look = f'width="{wide}" role="img" aria-label="{escape(alt)}" style="{style}"'
    return _svg(f"0 0 {across} {high * len(cuts)}", "".join(parts), look)


def _words(name, words, x, size):
    look = f'text-anchor="middle" font-family="{escape(PAGE_FONT)}" font-size="{size}"'
    above = f'<text x="{x}" y="0" font-weight="600" {look}>{name}</text>'
    return f'{above}<text x="{x}" y="131" {look}>{words}</text>'


def _svg(box, body, attributes):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" fill="currentColor" stroke="currentColor" '
        f'stroke-width="0" {attributes}>{body}</svg>'
    )


def _rect(x, y, width, height, look=""):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {look}/>'


def _dot(x, y, radius, look=""):
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {look}/>'


def _line(*points, look="", width=2):
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke-width="{width}" {look}/>'


def _wall(x, y, width, height):
    return _rect(x, y, width, height, f'fill="none" stroke-width="1.5" opacity="{ROOM}"')


def _office():
    return _wall(1, 12, 92, 100) + _dot(47, 62, 15, f'opacity="{FAINT}"')


def _sheets():
    """Corners of the twelve sheets on the desk."""
    return [(131 + 23 * i, 24 + 27 * j) for j in range(3) for i in range(4)]


def _desk(shown=True):
    sheets = "".join(_rect(x, y, 17, 20) for x, y in _sheets()) if shown else ""
    return _wall(122, 12, 104, 100) + f'<g opacity="{FAINT}">{sheets}</g>'


def _door():
    look = f'opacity="{ROOM}"'
    return _line((248, 12), (248, 44), look=look) + _line((248, 80), (248, 112), look=look)


def _students():
    """Coordinates of the hall's students, row by row, without those in the table's place."""
    x, y, width, height = TABLE
    for row in range(ROWS):
        for column in range(COLUMNS):
            at = HALL[0] + 10 + STEP * column, HALL[1] + 8 + STEP * row
            if not (x - 6 < at[0] < x + width + 6 and y - 6 < at[1] < y + height + 6):
                yield *at, row, column


def _hall(shown=True):
    dots = "".join(_dot(x, y, 4.2) for x, y, *_ in _students()) if shown else ""
    return _wall(HALL[0], HALL[1], 294, 100) + f'<g opacity="{FAINT}">{dots}</g>'


def _table():
    return _rect(*TABLE, f'rx="3" fill="none" stroke-width="1.5" opacity="{ROOM}"')


def _corridor():
    look = f'opacity="{ROOM}"'
    return _line((566, 46), (640, 46), look=look) + _line((566, 78), (640, 78), look=look)


def _far():
    return [(650 + STEP * i, HALL[1] + 8 + STEP * j) for j in range(ROWS) for i in range(7)]


def _next_hall():
    return (
        _wall(640, 12, 119, 100)
        + f'<g opacity="{FAINT}">'
        + "".join(_dot(x, y, 4.2) for x, y in _far())
        + "</g>"
    )


def _pixels(colour):
    """Every student colours one pixel: together, a lit sphere."""
    for x, y, row, column in _students():
        u, v = (column - 6.5) / 3.2, (row - 2.5) / 3.2
        rest = 1 - u * u - v * v
        light = max(0.0, -0.64 * u - 0.48 * v + 0.6 * rest**0.5) if rest > 0 else 0
        yield _dot(x, y, 4.2 + 2.2 * light, f'opacity="{0.22 + 0.78 * light:.2f}"')


def _cores(colour):
    """The professor and the hall."""
    yield _dot(47, 62, 19)
    yield from (_dot(x, y, 4.2) for x, y, *_ in _students())


def _parallel(colour):
    """Pairs hand their sums on, until one student has the total."""
    for x, y, row, column in _students():
        taking = column % 2**row == 0 and column < 8 and row < 4
        yield _dot(x, y, 5 if taking else 4, "" if taking else 'opacity="0.18"')
        if taking and row < 3 and column % 2 ** (row + 1) == 0:
            yield _line((x, y), (x, y + STEP), look=f'stroke="{colour}"')
            yield _line((x + STEP * 2**row, y), (x, y + STEP), look=f'stroke="{colour}"')


def _products(colour):
    """Tiles on the table."""
    x, y, width, height = TABLE
    yield _rect(*TABLE, f'rx="3" fill="none" stroke="{colour}" stroke-width="2"')
    yield from (_rect(x + 4 + 11 * i, y + 4 + 13 * j, 8, 10) for i in range(4) for j in range(2))


def _memory(colour):
    """Paper in the door."""
    for top, bottom in ((12, 44), (80, 112)):
        yield _line((248, top), (248, bottom), look=f'stroke="{colour}"', width=4)
    yield from (_rect(232 + 11 * i, 51, 8, 22, f'opacity="{1 - 0.25 * i}"') for i in range(4))


def _fit(colour):
    """A full desk, and one sheet too many."""
    yield from (_rect(x, y, 17, 20) for x, y in _sheets())
    yield _rect(
        217, 93, 17, 20, f'transform="rotate(18 225 103)" stroke="{colour}" stroke-width="2" fill="none"'
    )


def _precision(colour):
    """The same sheet at 32, 16, 8 and 4 bits."""
    sizes = (64, 32, 16, 8)
    yield from (_rect(134 + 22 * i, 94 - size, 16, size) for i, size in enumerate(sizes))


def _stack(colour):
    """Stairs from the professor's office to the hall."""
    steps = [
        (66, 30),
        (92, 30),
        (92, 44),
        (140, 44),
        (140, 58),
        (190, 58),
        (190, 68),
        (240, 68),
        (240, 78),
        (290, 78),
    ]
    yield _line(*steps, look=f'stroke="{colour}"', width=4)
    yield _dot(47, 62, 15)


def _inference(colour):
    """Readers who wait at the door."""
    yield from (_dot(268 + 22 * i, 62, 7.5, f'opacity="{1 - 0.09 * i:.2f}"') for i in range(10))


def _many(colour):
    """Two halls that compare notes."""
    yield from (_dot(x, y, 4.2) for x, y in _far())
    yield from (_dot(x, y, 4.2) for x, y, *_ in _students())
    yield from (_rect(574 + 16 * i, 53, 10, 18) for i in range(4))


def _choosing(colour):
    """A price tag on each hall."""
    for x, scale in ((320, 1.0), (450, 1.0), (692, 1.25)):
        tag = f'transform="translate({x} 62) scale({scale})"'
        yield f'<g {tag}><path d="M-34 0 L-20 -18 H34 V18 H-20 Z"/><circle cx="-20" r="4" fill="#fff"/></g>'


def _beyond(colour):
    """A wave that crosses the hall."""
    for x, y, row, column in _students():
        distance = abs(column - 4 - row) % 8
        yield _dot(x, y, 6 - 0.4 * min(distance, 6), f'opacity="{max(0.16, 1 - 0.28 * distance):.2f}"')


def _learning(colour):
    """A loss that falls across the hall, and the way to the desk and back."""
    for x, y, row, column in _students():
        below = y > HALL[1] + 88 - 80 * 0.84**column
        yield _dot(x, y, 4.6 if below else 3.6, "" if below else 'opacity="0.18"')
    for y, tip in ((50, 1), (74, -1)):
        yield _line((230, y), (266, y), look=f'stroke="{colour}"', width=3)
        end = 266 if tip > 0 else 230
        yield f'<path d="M{end} {y - 7} L{end + 9 * tip} {y} L{end} {y + 7} Z"/>'


def _tomorrow(colour):
    """A porter brings a whole tile down the aisle while everybody multiplies."""
    for x, y, row, _ in _students():
        if row not in (2, 3) or x > TABLE[0]:
            yield _dot(x, y, 4.2)
    for left, right in ((252, 342), (420, 484)):
        yield _line((left, 62), (right, 62), look=f'stroke="{colour}" stroke-dasharray="6 5"')
    yield '<path d="M484 55 L493 62 L484 69 Z"/>'
    yield _rect(364, 44, 48, 32, f'rx="3" fill="none" stroke="{colour}" stroke-width="2"')
    yield from (_rect(368 + 11 * i, 48 + 13 * j, 8, 10) for i in range(4) for j in range(2))
    yield _dot(352, 62, 6)
    yield from _products(colour)


# For each chapter, from the first: its drawing, and the part of the plan that it replaces (students, sheets).
LIT = dict(
    enumerate(
        (
            (_pixels, "students"),
            (_cores, "students"),
            (_parallel, "students"),
            (_products, ""),
            (_memory, ""),
            (_fit, "sheets"),
            (_precision, "sheets"),
            (_stack, ""),
            (_inference, "students"),
            (_many, ""),
            (_choosing, ""),
            (_beyond, "students"),
            (_learning, "students"),
            (_tomorrow, "students"),
        ),
        1,
    )
)
