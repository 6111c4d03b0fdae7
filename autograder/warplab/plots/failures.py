"""Failures as pictures: values beside what was expected, a device's engines, messages between ranks.

Each is an SVG in the page's own text colour, light or dark. It contains no script, no style sheet and no
untrusted text, only numbers and escaped names of the course. It is 360 pixels wide, to fit a phone.
"""

from html import escape

from warplab.plots.palette import PALETTE

WIDTH, SHOWN = 360, 440
PANEL, GAP, TALLEST = 112, 12, 150
TEXT = 11.5
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
ENGINES = ("in", "compute", "out")
STREAMS = ("blue", "orange", "green", "purple", "gold", "grey")


def svg_of(drawing):
    """(SVG, its description in a sentence) of a drawing, a dict of warplab.tasks.drawn."""
    return {"values": _values, "engines": _engines, "messages": _messages}[drawing["kind"]](drawing)


def _values(drawing):
    shape, wrong = drawing["shape"], drawing["wrong"]
    rows, columns = len(wrong), len(wrong[0])
    size = " x ".join(f"{n:,}" for n in shape)
    count, places = drawing["count"], 1
    for n in shape:
        places *= n
    alt = f"{drawing['name']}, {size}: {count:,} of {places:,} places are wrong."
    if "curve" in drawing:
        return _curve(drawing, alt)
    if "got" not in drawing:
        wide, tall = (WIDTH - 2) / columns, 22
        body = [_text(WIDTH / 2, 12, f"where {drawing['name']} is wrong"), _map(wrong, 1, 18, wide, tall)]
        body += _edges(drawing, 1, 18, wide * columns, tall)
        body += [_text(0, 54, f"[{', '.join('0' for _ in shape)}]", "start")]
        body += [_text(WIDTH, 54, f"[{', '.join(str(n - 1) for n in shape)}]", "end")]
        return _framed(body, 60, alt), f"{alt} Orange is wrong{_lines(drawing)}."
    cell = min(PANEL / columns, TALLEST / rows)
    wide, tall = cell * columns, cell * rows
    body = []
    for number, (title, shades) in enumerate(
        (("got", drawing["got"]), ("expected", drawing["expected"]), ("wrong", wrong))
    ):
        left = number * (PANEL + GAP) + (PANEL - wide) / 2
        body.append(_text(number * (PANEL + GAP) + PANEL / 2, 12, title))
        if title == "wrong":
            body.append(_map(shades, left, 18, cell, cell))
            body += _edges(drawing, left, 18, wide, tall)
        else:
            body.append(_grey(shades, left, 18, cell))
        body.append(_frame(left, 18, wide, tall))
    alt = f"{alt} Left what came, in the middle what was expected, right the wrong places."
    return (
        _framed(body, 18 + tall + 4, alt),
        "In the first two black is the least value that is expected, white the largest and purple no number; "
        f"in the third orange marks what is wrong{_lines(drawing)}.",
    )


def _curve(drawing, alt):
    """A one-dimensional result as a curve: the expected values as steps, the computed ones as dots."""
    curve, wrong = drawing["curve"], drawing["wrong"][0]
    left, top, tall = 62, 20, 96
    wide = (WIDTH - left - 3) / len(wrong)
    body = [_text((left + WIDTH) / 2, 12, drawing["name"])]
    for text, level in zip(curve["range"], (100 / 6, 500 / 6), strict=True):  # a quarter of the range outside
        if curve["range"][0] != curve["range"][1] or level < 50:
            body.append(_text(left - 6, top + tall * (1 - level / 100) + 4, text, "end"))
    body += [_frame(left, top, wide * len(wrong), tall), *_edges(drawing, left, top, wide * len(wrong), tall)]
    steps = "".join(
        f"M{left + place * wide:.4g} {top + tall * (1 - level / 100):.4g}h{wide:.4g}"
        for place, level in enumerate(curve["expected"])
        if level is not None
    )
    body.append(
        f'<path d="{steps}" fill="none" stroke="currentColor" stroke-width="2" stroke-opacity="0.6"/>'
    )
    for place, level in enumerate(curve["got"]):
        at = left + (place + 0.5) * wide, top + tall * (1 - (level or 0) / 100)
        body.append(_dot(*at, PALETTE["blue" if wrong[place] == "0" else "orange"], level is None))
    for place, side in ((0, "start"), (-1, "end")):
        end = ", ".join(str(n - 1 if place else 0) for n in drawing["shape"])
        body.append(_text(WIDTH if place else left, top + tall + 16, f"[{end}]", side))
    told = "Strokes are what was expected, dots what came: orange is wrong, blue is right"
    told += ", hollow is no number" if None in curve["got"] else ""
    told += ", and a dot on the frame lies further out" if {0, 100} & set(curve["got"]) else ""
    alt = f"{alt} {told}."
    return _framed(body, top + tall + 22, alt), f"{told}{_lines(drawing)}."


def _lines(drawing):
    return ", lines are the edges of blocks" if drawing["block"] else ""


def _runs(rows, wanted):
    """An SVG path of all cells with a wanted shade; neighbours in a row are joined."""
    path = []
    for y, row in enumerate(rows):
        x = 0
        while x < len(row):
            end = x
            while end < len(row) and row[end] == wanted:
                end += 1
            if end > x:
                path.append(f"M{x} {y}h{end - x}")
            x = max(end, x + 1)
    return "".join(path)


def _cells(rows, left, top, wide, tall, colour):
    """One path for each shade in `rows`. colour(shade) -> SVG attributes of its colour, or None."""
    paths = [
        f'<path {colour(shade)} d="{_runs(rows, shade)}"/>'
        for shade in sorted({shade for row in rows for shade in row})
        if colour(shade)
    ]
    move = f'transform="translate({left:.4g} {top:.4g}) scale({wide:.5g} {tall:.5g}) translate(0 .5)"'
    return f'<g {move} shape-rendering="crispEdges">{"".join(paths)}</g>'


def _grey(rows, left, top, cell):
    def colour(shade):
        if shade == ".":
            return f'stroke="{PALETTE["purple"]}"'
        return f'stroke="#{3 * f"{17 * int(shade, 16):02x}"}"'

    return _cells(rows, left, top, cell, cell, colour)


def _map(rows, left, top, wide, tall):
    def colour(shade):
        name, opacity = (PALETTE["grey"], 0.2) if shade == "0" else (PALETTE["orange"], 1)
        return f'stroke="{name}" stroke-opacity="{opacity}"'

    return _cells(rows, left, top, wide, tall, colour)


def _edges(drawing, left, top, wide, tall):
    """Lines between the areas of thread blocks, unless there are too many of them."""
    lines, shape = [], drawing["shape"]
    if not drawing["block"]:
        return []
    strip = len(drawing["block"]) == 1
    sizes, blocks = ([1, max(shape)], [1, *drawing["block"]]) if strip else (shape, drawing["block"])
    for along, (size, block, length) in enumerate(zip(sizes, blocks, (tall, wide), strict=True)):
        if size / block > 24:
            continue
        for place in range(block, size, block):
            at = place / size * length
            ends = (
                (left, top + at, left + wide, top + at)
                if along == 0
                else (left + at, top, left + at, top + tall)
            )
            lines.append(_line(*ends, 'stroke="currentColor" stroke-width="0.7" stroke-opacity="0.7"'))
    return lines


def _engines(drawing):
    spans = drawing["spans"]
    end = max((start + seconds for _, _, start, seconds, _ in spans), default=0.0) or 1.0
    left, tall = 62, 24
    scale = (WIDTH - left - 2) / end
    body, streams = [], sorted({stream for _, stream, _, _, _ in spans})
    for row, (engine, name) in enumerate(zip(ENGINES, ("copy in", "compute", "copy out"), strict=True)):
        top = 4 + row * (tall + 8)
        body.append(_text(left - 6, top + 16, name, "end"))
        body.append(_box(left, top, WIDTH - left - 2, tall, PALETTE["grey"], 0.15))
        for which, stream, start, seconds, _ in spans:
            if which != engine:
                continue
            colour = PALETTE[STREAMS[streams.index(stream) % len(STREAMS)]]
            wide = max(seconds * scale - 0.6, 0.6)
            body.append(_box(left + start * scale, top, wide, tall, colour))
            if wide > 12:
                at = left + start * scale + wide / 2
                body.append(_text(at, top + 16, str(stream), colour="#ffffff"))
    bottom = 4 + 3 * (tall + 8)
    body.append(_text(left, bottom + 10, "0", "start"))
    body.append(_text(WIDTH, bottom + 10, f"{1e3 * end:.3g} ms", "end"))
    busy = ", ".join(
        f"{name} {sum(s for which, _, _, s, _ in spans if which == engine) / end:.0%}"
        for engine, name in zip(ENGINES, ("copy in", "compute", "copy out"), strict=True)
    )
    shown = f"The first {len(spans)} operations of the device" if drawing["more"] else "What the device did"
    told = f"{shown}, one row for each engine; the colour and the number are the stream. Busy: {busy}."
    return _framed(body, bottom + 16, told), told


def _messages(drawing):
    size, rows = drawing["size"], drawing["messages"]
    times = sorted({time for row in rows for time in row[3:] if time is not None})
    place = {time: number for number, time in enumerate(times)}
    step, top = 13, 26
    bottom = top + step * (len(times) + 1)
    across = {rank: WIDTH * (rank + 0.5) / size for rank in range(size)}
    body = []
    for rank, x in across.items():
        body.append(_text(x, 12, f"rank {rank}" if size < 7 else str(rank)))
        body.append(_line(x, 18, x, bottom, 'stroke="currentColor" stroke-width="1" stroke-opacity="0.5"'))
    alone = {"send": 0, "receive": 0}
    for sender, receiver, _, sent, got in rows:
        a, b = across[sender], across[receiver]
        if sent is not None and got is not None:
            y, colour = (top + step * place[sent], top + step * place[got] + step / 2), PALETTE["blue"]
            body += _arrow(a, y[0], b, y[1], colour)
            continue
        alone["send" if got is None else "receive"] += 1
        time = sent if got is None else got
        y = top + step * place[time]
        # a fraction of the way that ends between two ranks; half of the way from 2 to 0 would end on rank 1
        ends = (a, y, a + 0.6 * (b - a), y) if got is None else (b - 0.6 * (b - a), y, b, y)
        body.append(_line(*ends, f'stroke="{PALETTE["orange"]}" stroke-width="2" stroke-dasharray="4 3"'))
        body.append(_dot(a if got is None else b, y, PALETTE["orange"]))
    told = f"Messages between {size} ranks, time downwards: {len(rows) - sum(alone.values())} arrived"
    dashed = [f"{number} {what}{'s' * (number > 1)}" for what, number in alone.items() if number]
    told += f"; dashed: {' and '.join(dashed)} whose other half never came." if dashed else "."
    if drawing["more"]:
        told += f" These are the first {len(rows)}."
    return _framed(body, bottom + 2, told), told


def _arrow(x1, y1, x2, y2, colour):
    side = 1 if x2 > x1 else -1
    head = f"M{x2:.4g} {y2:.4g}l{-6 * side} -3v6z"
    return [
        _line(x1, y1, x2, y2, f'stroke="{colour}" stroke-width="1.4"'),
        f'<path d="{head}" fill="{colour}"/>',
    ]


def _framed(body, height, alt):
    size = f'viewBox="0 0 {WIDTH} {height:.4g}" width="{SHOWN}"'
    style = f'style="max-width:100%;height:auto;display:block;font-family:{FONT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(alt)}" {style}>'
    return f"{head}{''.join(body)}</svg>"


def _text(x, y, text, anchor="middle", colour="currentColor"):
    return (
        f'<text x="{x:.4g}" y="{y:.4g}" font-size="{TEXT}" text-anchor="{anchor}" '
        f'fill="{colour}">{escape(text)}</text>'
    )


def _line(x1, y1, x2, y2, how):
    return f'<line x1="{x1:.4g}" y1="{y1:.4g}" x2="{x2:.4g}" y2="{y2:.4g}" {how}/>'


def _box(x, y, width, height, colour, opacity=1.0):
    return (
        f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" fill="{colour}" '
        f'fill-opacity="{opacity:g}"/>'
    )


def _frame(x, y, width, height):
    return (
        f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" fill="none" '
        'stroke="currentColor" stroke-opacity="0.4"/>'
    )


def _dot(x, y, colour, hollow=False):
    inside = f'fill="none" stroke="{colour}"' if hollow else f'fill="{colour}"'
    return f'<circle cx="{x:.4g}" cy="{y:.4g}" r="3" {inside}/>'
