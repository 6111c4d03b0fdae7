"""Figure of the engine's page: where a kernel goes, to the engine and to a GPU."""

from matplotlib.patches import Rectangle

from warplab import plots

INK, COLOUR = plots.INK, plots.PALETTE
ARROW = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}


@plots.responsive
def two_ways():
    """From one kernel to PTX, then to the engine on a CPU and to machine code on a GPU."""
    fig, ax = plots.new(plots.COLUMN, 4.2)
    ax.set(xlim=(-0.1, 10.1), ylim=(9.3, -0.1))
    ax.set_axis_off()
    for x, y, width, text, colour in (
        (1.8, 0, 6.4, "your kernel: Python,\nCUDA C++ or Triton", "grey"),
        (3.4, 2.7, 3.2, "PTX", "blue"),
        (0, 5.3, 4.7, "the engine runs it\non a CPU", "blue"),
        (5.3, 5.3, 4.7, "machine code (SASS)\nruns on a GPU", "orange"),
        (0, 7.9, 4.7, "results, counts, checks", "blue"),
        (5.3, 7.9, 4.7, "results and times", "orange"),
    ):
        height = 1.5 if "\n" in text else 1.1
        ax.add_patch(
            Rectangle((x, y), width, height, facecolor=COLOUR[colour], edgecolor=INK, alpha=0.28, linewidth=0)
        )
        ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INK, linewidth=1.2))
        ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", linespacing=1.3)
    for start, end in (
        ((5, 1.5), (5, 2.7)),
        ((4.2, 3.8), (2.4, 5.3)),
        ((5.8, 3.8), (7.6, 5.3)),
        ((2.35, 6.8), (2.35, 7.9)),
        ((7.65, 6.8), (7.65, 7.9)),
    ):
        ax.annotate("", end, start, arrowprops=ARROW)
    ax.text(5.25, 2.1, "NVIDIA's compiler", va="center")
    ax.text(7.0, 4.4, "ptxas", va="center")
    return plots.show(
        fig,
        alt="NVIDIA's compiler turns a kernel in Python, CUDA C++ or Triton into PTX. Two ways lead on. The "
        "engine runs PTX on a CPU and gives results, counts and checks. The assembler ptxas turns PTX into "
        "machine code, which runs on a GPU and gives results and times.",
        caption="Both ways begin at the same PTX. The left one needs no GPU, and has no time.",
    )
