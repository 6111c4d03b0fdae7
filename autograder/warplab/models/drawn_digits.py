"""Pictures of the ten digits, drawn from strokes: the course's own data set, without a download."""

import numpy as np

# Polylines in the unit square, x to the right and y down; an arc is a polyline with many corners.
_TURN = np.linspace(0, 2 * np.pi, 13)


def _arc(x, y, width, height, first=0, last=12):
    """Points of an ellipse, clockwise from the right (number 0) to the bottom (3), left (6), top (9)."""
    turn = _TURN[first : last + 1] if last <= 12 else np.linspace(_TURN[first], last * np.pi / 6, 13)
    return np.stack([x + width * np.cos(turn), y + height * np.sin(turn)], axis=-1)


def _line(*points):
    return np.array(points, dtype=np.float64)


STROKES = (
    (_arc(0.5, 0.5, 0.26, 0.38),),
    (_line((0.35, 0.25), (0.53, 0.12), (0.53, 0.88)),),
    (_arc(0.5, 0.33, 0.24, 0.21, 6, 13), _line((0.71, 0.44), (0.26, 0.87), (0.76, 0.87))),
    (_arc(0.46, 0.31, 0.24, 0.19, 7, 15), _arc(0.46, 0.68, 0.27, 0.2, 9, 17)),
    (_line((0.62, 0.88), (0.62, 0.12), (0.22, 0.64), (0.8, 0.64)),),
    (_line((0.74, 0.13), (0.32, 0.13), (0.29, 0.46)), _arc(0.48, 0.64, 0.26, 0.23, 8, 17)),
    (_line((0.66, 0.12), (0.38, 0.34), (0.27, 0.62)), _arc(0.51, 0.66, 0.24, 0.22)),
    (_line((0.24, 0.14), (0.76, 0.14), (0.42, 0.88)),),
    (_arc(0.5, 0.31, 0.2, 0.19), _arc(0.5, 0.69, 0.25, 0.2)),
    (_arc(0.49, 0.34, 0.24, 0.22), _line((0.73, 0.36), (0.66, 0.64), (0.44, 0.88))),
)


def drawn_digits(rng, count, side=8, classes=10):
    """(pictures, labels): float32 [count, side * side] between 0 (paper) and 1 (ink), and int32 [count].

    rng: a NumPy Generator; the same state draws the same pictures. Every picture is its digit shifted,
    rotated, sheared and scaled a little, drawn with a pen of random width, with noise added.
    The labels are 0 to classes - 1, each equally often as far as count allows, in random order.
    """
    labels = rng.permutation(np.arange(count) % classes).astype(np.int32)
    pictures = np.empty((count, side * side), np.float32)
    middle = (np.arange(side) + 0.5) / side
    paper = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    for picture, label in zip(pictures, labels, strict=True):
        angle, slant = rng.uniform(-0.2, 0.2, 2)
        turned = np.array([[np.cos(angle), -np.sin(angle) + slant], [np.sin(angle), np.cos(angle)]])
        placed = turned * rng.uniform(0.8, 1.1, (2, 1))
        shift, pen = rng.uniform(-0.08, 0.08, 2), rng.uniform(0.01, 0.05)
        far = np.full(len(paper), np.inf)
        for stroke in STROKES[label]:
            moved = (stroke - 0.5) @ placed.T + 0.5 + shift
            far = np.minimum(far, _distance(paper, moved[:-1], moved[1:]))
        ink = np.clip(1 - (far - pen) * side, 0, 1)
        picture[:] = np.clip(ink + rng.normal(0, 0.08, len(paper)), 0, 1)
    return pictures, labels


def _distance(points, starts, ends):
    """The distance of each point to the nearest of the segments from starts to ends."""
    along = ends - starts
    away = points[:, None] - starts
    share = np.clip((away * along).sum(-1) / (along**2).sum(-1), 0, 1)
    return np.linalg.norm(away - share[..., None] * along, axis=-1).min(axis=1)
