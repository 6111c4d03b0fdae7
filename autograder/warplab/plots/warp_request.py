"""One memory request of a warp, in a sentence and as a picture: lanes above, the sectors or banks below.

A request is a warplab.simt.counters.watch.Sample. The picture is an SVG in the page's
own text colour, light or dark, and needs
nothing but this text: no style sheet, no script, no font of its own.
"""

import textwrap
from html import escape

from warplab.plots.palette import PALETTE
from warplab.plots.responsive import on_phone

WIDTH, LANE = 480, 15  # widths of the picture, and of a lane or bank in it, in units of the SVG
SHOWN, SHOWN_ON_PHONE = 560, 400  # largest widths in CSS pixels; a phone has some 300
LETTERS, LETTERS_ON_PHONE = 12, 18  # font sizes in units of the SVG
LANES_TOP, LANES_END = 34, 46
BELOW, BELOW_ON_PHONE = 100, 150
SECTOR_HEIGHT, WORDS_HEIGHT, WORD_HEIGHT = 20, 150, 12
NUMBERED = (0, 8, 16, 24, 31)  # lanes and banks
MOST_IN_A_ROW = (
    40  # sectors from the first to the last; where they are more, those that nobody wants are left out
)
VERBS = {"read": "read", "write": "write", "atomic": "update"}
IN_PTX = {"read": "load", "write": "store", "atomic": "atomic operation"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def finding(request, array, compared=True):
    """What the request costs, as a sentence without a full stop. array: the memory's name.

    compared: also tell the minimum if it is less.
    """
    lanes = len(request.lanes)
    who = f"{counted(lanes, 'lane')} {VERBS[request.kind]}{'s' if lanes == 1 else ''}"
    made, fewest = request.cost
    does = f" where {fewest} would do" if compared and made > fewest else ""
    if request.space == "shared":
        return f"{who} {array} in {counted(made, 'wavefront')}{does}"
    return f"{who} {counted(made, 'sector')} of {array}{does}"


def counted(number, noun):
    """A number with its noun: "1 lane", "32 lanes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def svg(request, alt):
    """The SVG with alt text; in a phone's drawing letters are larger and the picture is higher."""
    size = LETTERS_ON_PHONE if on_phone() else LETTERS
    body, height, told = _banks(request) if request.space == "shared" else _sectors(request)
    lanes = len(request.lanes)
    who = "32 lanes of one warp" if lanes == 32 else f"{lanes} of the 32 lanes of one warp"
    idle = [
        _box(lane * LANE + 1, LANES_TOP, LANE - 2, LANES_END - LANES_TOP, None)
        for lane in set(range(32)) - set(request.lanes)
    ]
    active = [
        _box(lane * LANE + 1, LANES_TOP, LANE - 2, LANES_END - LANES_TOP, "blue") for lane in request.lanes
    ]
    heads = [who, f"one {IN_PTX[request.kind]} of its PTX"]
    heads = heads if on_phone() else [", ".join(heads)]
    foot = textwrap.wrap(told, 46 if on_phone() else 74)
    top = 1.35 * size * len(heads)  # height of the lines above the lanes' numbers
    numbers = _numbers("lane", LANES_TOP - 4, size)
    if request.space == "shared":
        height += 0.9 * size + 3
        numbers += _numbers("bank", height, size)
    parts = [
        *(_text(1.35 * size * (line - len(heads) + 1) + 16, text, size) for line, text in enumerate(heads)),
        *numbers,
        *idle,
        *active,
        *body,
        *(_text(height + 1.35 * size * (line + 1) + 2, text, size) for line, text in enumerate(foot)),
    ]
    box = f"0 {-top:g} {WIDTH} {top + height + 1.35 * size * len(foot) + size:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" '
        f'width="{SHOWN_ON_PHONE if on_phone() else SHOWN}" role="img" aria-label="{escape(alt)}" '
        f'style="max-width: 100%; height: auto; display: block; font-family: {FONT}">{"".join(parts)}</svg>'
    )


def _sectors(request):
    """SVG of the sectors as boxes: tinted if fetched, filled where bytes are requested."""
    touched = request.sectors
    whole = touched[-1] - touched[0] < MOST_IN_A_ROW
    shown = range(touched[0], touched[-1] + 1) if whole else touched
    gaps = 0 if whole else sum(b - a > 1 for a, b in zip(touched, touched[1:], strict=False))
    size = min(WIDTH / (len(shown) + gaps / 3), 120)
    left = (WIDTH - size * (len(shown) + gaps / 3)) / 2
    place, last = {}, None
    for sector in shown:
        left += size / 3 if last is not None and sector - last > 1 else 0
        place[sector], left, last = left, left + size, sector
    wide = size - min(2, 0.12 * size)
    colour = "orange" if len(touched) > request.fewest_sectors else "green"
    body = [
        _box(place[s], _below(), wide, SECTOR_HEIGHT, colour if s in set(touched) else None, 0.35)
        for s in shown
    ]
    for first, end in _runs({byte for o in request.offsets for byte in range(o, o + request.width)}):
        body.append(
            _box(
                place[first // 32] + first % 32 / 32 * wide,
                _below(),
                (end - first) / 32 * wide,
                SECTOR_HEIGHT,
                colour,
            )
        )
    for lane, offset in zip(request.lanes, request.offsets, strict=True):
        body.append(_line(lane, place[offset // 32] + (offset % 32 + min(request.width, 32) / 2) / 32 * wide))
    return (
        body,
        _below() + SECTOR_HEIGHT,
        f"{counted(len(touched), 'sector')} of 32 bytes touched in {request.label}",
    )


def _runs(wanted):
    """[(first, end)] of the runs of requested bytes within one sector."""
    wanted = sorted(wanted)
    starts = [
        b for a, b in zip([None, *wanted], wanted, strict=False) if a is None or b - a > 1 or b % 32 == 0
    ]
    ends = [
        a + 1
        for a, b in zip(wanted, [*wanted[1:], None], strict=False)
        if b is None or b - a > 1 or b % 32 == 0
    ]
    return zip(starts, ends, strict=True)


def _banks(request):
    """SVG of the words requested from each bank, one for each wavefront; those beyond the minimum number of
    wavefronts have another colour.
    """
    made, fewest = request.cost
    depths = request.depths
    step = min(WORDS_HEIGHT / made, WORD_HEIGHT)
    body = [
        _box(bank * LANE + 1, _below(), LANE - 2, WORD_HEIGHT, None)
        for bank, depth in enumerate(depths)
        if not depth
    ]
    for bank, depth in enumerate(depths):
        for number in range(depth):
            colour = "green" if number < fewest else "orange"
            body.append(
                _box(bank * LANE + 1, _below() + number * step, LANE - 2, step - min(1.5, step / 4), colour)
            )
    for lane, offset in zip(request.lanes, request.offsets, strict=True):
        body.append(_line(lane, offset // 4 % 32 * LANE + LANE / 2))
    passes = f"{counted(made, 'wavefront')}, " + (
        f"where {fewest} would do" if made > fewest else "the fewest for so many words"
    )
    return body, _below() + max(step * made, WORD_HEIGHT), f"words asked of each bank: {passes}"


def _box(x, y, width, height, colour, opacity=1.0):
    fill = (
        f'fill="{PALETTE[colour]}" fill-opacity="{opacity:g}"'
        if colour
        else f'fill="none" stroke="{PALETTE["grey"]}" stroke-width="0.8"'
    )
    return f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" {fill}/>'


def _line(lane, x):
    ends = f'x1="{lane * LANE + LANE / 2:g}" y1="{LANES_END}" x2="{x:.4g}" y2="{_below()}"'
    return f'<line {ends} stroke="{PALETTE["blue"]}" stroke-width="1" stroke-opacity="0.75"/>'


def _below():
    """The y coordinate at which sectors or banks begin."""
    return BELOW_ON_PHONE if on_phone() else BELOW


def _numbers(noun, y, size):
    """SVG of some lanes' or banks' numbers, centred on them; the first with its noun."""
    rest = [_text(y, str(n), 0.9 * size, n * LANE + LANE / 2) for n in NUMBERED[1:]]
    return [_text(y, f"{noun} {NUMBERED[0]}", 0.9 * size, 0, "start"), *rest]


def _text(y, text, size, x=WIDTH / 2, anchor="middle"):
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" '
        f'fill="currentColor">{escape(text)}</text>'
    )
