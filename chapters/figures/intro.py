"""Figures of the preface: the running pictures, and the marker that each kind of evidence has."""

from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from warplab import plots


@plots.responsive
def running_pictures():
    """The professor beside the hall of students, with the desk and the door between paper and people."""
    fig, ax = plots.new(5.6, 2.2)
    blue, gold, grey = (plots.PALETTE[name] for name in ("blue", "gold", "grey"))
    ax.add_patch(Rectangle((0, 0), 18, 26, facecolor=grey, alpha=0.12))
    ax.add_patch(Circle((9, 12), 4.2, facecolor=blue, alpha=0.9, linewidth=0))
    ax.text(9, 23, "the professor", ha="center", va="center", weight="bold")
    ax.text(9, 4, "a CPU core: one\nsum at a time", ha="center", va="center", fontsize=10)

    ax.add_patch(Rectangle((23, 0), 17, 26, facecolor=gold, alpha=0.16))
    for i in range(4):
        for j in range(3):
            ax.add_patch(
                Rectangle((25 + 4.6 * j, 8.4 + 3 * i), 3.6, 2.2, facecolor=gold, alpha=0.75, linewidth=0)
            )
    ax.text(31.5, 23, "the desk", ha="center", va="center", weight="bold")
    ax.text(31.5, 4, "VRAM: what\nlies ready", ha="center", va="center", fontsize=10)

    arrow = "simple,head_width=12,head_length=10,tail_width=5"
    ax.add_patch(FancyArrowPatch((38, 13), (51, 13), arrowstyle=arrow, color=plots.PALETTE["orange"]))
    ax.text(45, 23, "the door", ha="center", va="center", weight="bold")
    ax.text(45.2, 4, "how fast\nit comes", ha="center", va="center", fontsize=10)
    for low, high in ((6.5, 10), (16, 20.5)):
        ax.plot([45, 45], [low, high], color=plots.INK, linewidth=3)

    ax.add_patch(Rectangle((50.5, 0), 29.5, 26, facecolor=blue, alpha=0.12))
    for i in range(6):
        for j in range(14):
            ax.add_patch(Circle((53 + 1.9 * j, 8.7 + 2.2 * i), 0.72, facecolor=blue, alpha=0.9, linewidth=0))
    ax.text(65, 23, "the hall", ha="center", va="center", weight="bold")
    ax.text(65, 4, "a GPU: thousands of sums\nat once, each slower", ha="center", va="center", fontsize=10)
    ax.set(xlim=(-0.2, 80.2), ylim=(-0.2, 26.2), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return plots.show(
        fig,
        alt="Four pictures side by side. The professor, one large dot: a CPU core, one sum at a time. "
        "The desk with a dozen sheets of paper: VRAM, what lies ready. "
        "The door, an arrow through a gap: bandwidth, how fast paper comes. "
        "The hall, 84 small dots: a GPU, thousands of sums at once, each slower.",
        caption="The pictures of this course. Adding students helps until paper comes too slowly; "
        "then only the door matters.",
    )


@plots.responsive
def evidence():
    """One row for each kind of evidence, with the marker that it has in every figure of the book."""
    words = {
        "live": "live: measured by the machine that made the page",
        "extrapolated": "extrapolated: from a smaller live run, scaled",
        "recorded": "recorded: on a device named with driver and date",
        "published": "published: somebody else's number, cited",
    }
    fig, ax = plots.new(5.2, 1.7)
    for y, (kind, text) in enumerate(words.items()):
        ax.plot([0], [y], markersize=10, markeredgewidth=2, linestyle="none", **plots.MARKERS[kind])
        ax.text(0.55, y, text, va="center")
    ax.text(0, len(words), "not recorded yet", va="center", style="italic", color=plots.PALETTE["grey"])
    ax.text(3.1, len(words), "not measured: the place stays empty", va="center")
    ax.set(xlim=(-0.3, 10), ylim=(len(words) + 0.6, -0.6), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return plots.show(
        fig,
        alt="Key of markers. Live: a filled blue circle. Extrapolated: an open blue circle. Recorded: a "
        "green square. Published: a golden triangle. Not recorded yet: no marker, the words in grey "
        "italics.",
        caption="Where a number comes from can be seen from its shape, in every figure of the book.",
    )
