"""How many points of a problem set a notebook has earned so far: the bar under each table of `grade`.

Kept in this process only: after a restart of the kernel nothing has been checked, and a file that remembers
would vouch for code that has since changed. "Run all cells" counts everything again.
"""

from warplab import crossing
from warplab.rendering import render
from warplab.tasks import registry

EARNED, OPEN = "#2a9d6f", "#7a869a"
WIDTH = 40  # characters of the bar in a terminal

_latest = {}  # (task, rubric) -> Report of the last check, which may have earned less than the one before


_tried = {}  # task -> the texts, as hashes, with which a row of it lost points


def changed_attempts(report, text):
    """How many different attempts have lost points in this task, with this one, whose code is `text`."""
    tried = _tried.setdefault(report.task, set())
    if any(line.state in ("lost", "partial") for line in report.lines):
        tried.add(hash(text))
    return len(tried)


def after(report, rubric=None):
    """Note the report of one grade cell; returns the Bar of its problem set."""
    _latest[report.task, rubric] = report
    return Bar(report.task.partition("/")[0], _latest)


class Bar:
    """The points of one problem set as HTML that inherits the page's colours, or as plain text.

    reports: (task, rubric) -> Report. Timed rows count in the total; without a CUDA device their points are
    open, not lost.
    """

    def __init__(self, problem_set, reports):
        self.name = problem_set
        done, waiting, self.points, self.open, self.max = [], [], 0.0, 0.0, 0.0
        for name in registry.names(problem_set):
            for rubric, label in ((None, ""), ("time", ", speed")):
                worth, report = registry.get(name).points_for(rubric), reports.get((name, rubric))
                self.max += worth
                if rubric == "time" and (report.ungraded if report else not crossing.can_time()):
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
        return "\n  ".join([f"{self.headline}  [{'#' * filled}{'.' * (WIDTH - filled)}]", *self.parts])

    def _repr_html_(self):
        return render("warplab.tasks", "progress.html.j2", bar=self, earned=EARNED, open=OPEN)

    @property
    def headline(self):
        return f"{self.name} so far: {self.points:g} of {self.max:g} points that checks give"


def _short(name):
    return name.partition("/")[2]
