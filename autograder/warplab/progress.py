"""How many points of a problem set a notebook has earned so far: the bar under each table of `grade`.

Kept in this process only: after a restart of the kernel nothing has been checked, and a file that remembers would vouch for code that has
since changed. "Run all cells" counts everything again.
"""

from html import escape

from warplab import task as tasks

EARNED, OPEN = "#2a9d6f", "#7a869a"
WIDTH = 40  # characters of the bar in a terminal

_latest = {}  # (task, rubric) -> Report of the last check, which may have earned less than the one before


def after(report, rubric=None):
    """Note the report of one grade cell; returns the Bar of its problem set."""
    _latest[report.task, rubric] = report
    return Bar(report.task.partition("/")[0], _latest)


class Bar:
    """The points of one problem set as HTML that inherits the page's colours, or as plain text.

    reports: (task, rubric) -> Report. Timed rows count in the total; where there is no CUDA device their points are open, not lost.
    """

    def __init__(self, problem_set, reports):
        self.name = problem_set
        done, waiting, self.points, self.open, self.max = [], [], 0.0, 0.0, 0.0
        for name in tasks.names(problem_set):
            for rubric, label in ((None, ""), ("time", ", speed")):
                worth, report = tasks.get(name).points_for(rubric), reports.get((name, rubric))
                self.max += worth
                if rubric == "time" and (report.ungraded if report else not tasks.can_time()):
                    self.open += worth
                elif report:
                    self.points += report.score
                    done.append(f"{_short(name)}{label} {report.score:g} of {worth:g}")
                elif worth:
                    waiting.append(_short(name) + label)
        self.parts = [", ".join(done)] if done else []
        self.parts += [f"not checked since the kernel started: {', '.join(waiting)}"] if waiting else []
        self.parts += [f"left open: {self.open:g} for speed, which need a CUDA GPU"] if self.open else []

    def __repr__(self):
        filled = int(WIDTH * self.points / self.max)
        return "\n  ".join([f"{self._headline()}  [{'#' * filled}{'.' * (WIDTH - filled)}]", *self.parts])

    def _repr_html_(self):
        full, left = (100 * part / self.max for part in (self.points, self.open))
        outline = "display:flex;justify-content:space-between;height:.5em;overflow:hidden;border:1px solid rgba(128,128,128,.7);border-radius:.3em;"
        return (
            '<div class="warplab-progress" style="color:inherit;background:transparent;max-width:60em;padding:.5em .7em;line-height:1.3;">'
            f'<strong>{escape(self._headline())}</strong>'
            f'<div role="progressbar" aria-label="Points in {escape(self.name)}" aria-valuemin="0" aria-valuemax="{self.max:g}" '
            f'aria-valuenow="{self.points:g}" aria-valuetext="{self.points:g} of {self.max:g} points" style="{outline}margin:.3em 0;">'
            f'<div style="width:{full:.1f}%;background:{EARNED};"></div><div style="width:{left:.1f}%;background:{OPEN};opacity:.5;"></div></div>'
            f'<small style="overflow-wrap:anywhere;">{"<br>".join(map(escape, self.parts))}</small></div>'
        )

    def _headline(self):
        return f"{self.name} so far: {self.points:g} of {self.max:g} points that checks give"


def _short(name):
    return name.partition("/")[2]
