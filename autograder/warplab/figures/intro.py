"""Figures of the preface: the running pictures, and the marker that each kind of evidence has."""

from warplab import plots
from warplab.figures import building

WORDS = {
    "live": "live: by the machine that made the page",
    "extrapolated": "extrapolated: from a smaller live run, scaled",
    "recorded": "recorded: on a named device, with date",
    "contributed": "contributed: a reader's GPU, checked",
    "published": "published: somebody else's number, cited",
    "yours": "yours: your own GPU, in your browser",
    "counted": "counted: by the engine, never a time",
    "theory": "theory: what a data sheet or a formula allows",
}


def running_pictures():
    """The professor beside the hall of students, with the desk and the door between paper and people."""
    return building.plan(
        alt="The plan of a building. The professor's office with one large dot: a CPU core, one sum at a "
        "time. The desk with a dozen sheets of paper: VRAM, what lies ready. The door, with paper in it: "
        "bandwidth, how fast it comes. The hall, about a hundred small dots and a table: a GPU, thousands "
        "of sums at once, each slower; at the table a block shares what it fetched. A corridor leads to "
        "the next hall.",
        caption="The pictures of this course, with what they stand for. More students (arithmetic) help "
        "until the paper comes too slowly. From then on only a wider door (memory bandwidth) helps.",
    )


@plots.responsive
def evidence():
    """One row for each kind of evidence, with the marker that it has in every figure of the book."""
    fig, ax = plots.new(plots.COLUMN, 2.85)
    for y, (kind, text) in enumerate(WORDS.items()):
        if kind == "theory":
            ax.plot([-0.23, 0.23], [y, y], color=plots.INK, linestyle=(0, (5, 3)), linewidth=1.8)
        else:
            style = plots.COUNTED if kind == "counted" else plots.MARKERS[kind]
            ax.plot([0], [y], markersize=10, markeredgewidth=2, linestyle="none", **style)
        ax.text(0.45, y, text, va="center")
    ax.text(0, len(WORDS), "not recorded yet", va="center", style="italic", color=plots.PALETTE["grey"])
    place = (0.45, len(WORDS) + 0.9) if plots.on_phone() else (2.4, len(WORDS))
    ax.text(*place, "not measured: the place stays empty", va="center")
    ax.set(xlim=(-0.3, 5 if plots.on_phone() else 9), ylim=(place[1] + 0.6, -0.6), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return plots.show(
        fig,
        alt="Key of markers. Live: a filled blue circle. Extrapolated: an open blue circle. Recorded: a "
        "green square. Contributed: a green plus. Published: a golden triangle. Yours: a purple diamond. "
        "Counted: a cross in ink. Theory: a dashed line. Not recorded yet: no marker, the words in grey "
        "italics.",
        caption="Where a number comes from can be seen from its shape, in every figure of the book.",
    )
