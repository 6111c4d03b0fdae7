"""Warm-ups: kernels of one to three lines; each is drawn and checked, and a right answer unlocks the next.

    grade("ps00/number", ...)          draws the task: threads, arrays, and the values to be computed
    grade("ps00/number", number)       draws what the kernel did, checks it, and unlocks the next
    grade("ps00/number", "show me")    shows an answer, and unlocks the next

Unlocked warm-ups stay so after a restart of the kernel, if progress.py can store that in the folder.
"""

import inspect
from dataclasses import dataclass

import numpy as np

from warplab.crossing.kernel import answer, finish, question
from warplab.crossing.orders import LaunchStep
from warplab.rendering import render
from warplab.tasks import drawn_threads, progress, registry
from warplab.tasks.declaration import KernelTask
from warplab.tasks.progress import EARNED, OPEN
from warplab.tasks.rubric import Item

SHOW_ME = "show me"
LOST = "#d1495b"

_done = set()  # names of the warm-ups that were right, or shown, since the kernel started


class WarmUp(KernelTask):
    """A warm-up: one idea in a kernel of one to three lines, for one point.

    Its first case is drawn. Case.inputs has "blocks" and "threads" besides the arguments. said: the sentence
    for a right answer. worked(): a right kernel.
    """

    items = (Item("right", 1, title="The numbers are right"),)
    said = ""
    corners = 3

    def worked(self):
        from warplab.tasks import worked_warm_ups

        return getattr(worked_warm_ups, self.entry)

    def plan(self, inputs):
        return inputs["blocks"], inputs["threads"]

    def instead(self, submission):
        """A Card instead of a check: the task, an answer, or why this warm-up is still locked."""
        missing = self._closed_by()
        if missing:
            text = f"`{self.name}` opens after `{missing}`: run its cells, or see an answer to it with "
            return Card("Not yet.", f'{text}`grade("{missing}", "{SHOW_ME}")`.', OPEN)
        if submission is ...:
            drawing, told = drawn_threads.picture(self.scene())
            return Card("What is asked.", told, OPEN, drawing)
        if isinstance(submission, str) and submission.strip().casefold() == SHOW_ME:
            _done.add(self.name)
            kernel = self.worked()
            drawing, _ = drawn_threads.picture(self.scene(), self.run(kernel))
            code = inspect.getsource(kernel.py_func).rstrip()
            return Card("An answer.", f"{self.said} {self._next()}".strip(), OPEN, drawing, code)
        return None

    def beside(self, report, submission):
        """The Card above the table of a check: what the threads of this kernel did."""
        right = report.score == report.max
        if right:
            _done.add(self.name)
        run = None
        if not any("stopped after" in line.reason for line in report.lines):
            try:
                run = self.run(submission)
            except Exception:  # noqa: BLE001 - it does not compile; the table tells why
                run = None
        drawing, told = drawn_threads.picture(self.scene(), run)
        if right:
            return Card("Right.", f"{self.said} {self._next()}".strip(), EARNED, drawing)
        if run is None:
            return Card("Nothing has run yet.", f"The check below says why. {told}", OPEN, drawing)
        if not any(run.wrong(name, want) for name, want in self.scene().outputs.items()):
            told += " Still something is wrong: the check below says what."
        return Card("Not yet right.", told, LOST, drawing)

    def scene(self):
        """The Scene of the first case."""
        case = self.cases()[0]
        outputs = {name: np.asarray(want) for name, want in self.expected(case)[0].items()}
        inputs = {
            name: case.inputs[name]
            for name in self.arguments
            if type(case.inputs.get(name)) is np.ndarray and name not in outputs
        }
        grid, block = (drawn_threads.three(size) for size in self.plan(case.inputs))
        return drawn_threads.Scene(inputs, outputs, grid, block)

    def run(self, submission):
        """The drawn_threads.DrawnRun of the first case. Raises what compiling raises."""
        case = self.cases()[0]
        told = answer(question(self, case), (self.entry, None), submission, None, None)
        order = finish(self, case, told, None)
        step = order.steps[0]
        assert isinstance(step, LaunchStep)
        return drawn_threads.traced(order.kernels[0], step.arguments, order.buffers, step.grid, step.block)

    def _closed_by(self):
        """The first earlier warm-up that is neither solved nor shown; None if this one is unlocked.

        A warm-up that is itself solved or shown stays unlocked.
        """
        names = registry.names(self.name.partition("/")[0])
        before = names[: names.index(self.name)]
        missing = [name for name in (self.name, *before) if name not in _done and not progress.solved(name)]
        return missing[1] if missing[:1] == [self.name] and missing[1:] else None

    def _next(self):
        names = registry.names(self.name.partition("/")[0])
        after = names[names.index(self.name) + 1 :]
        return f"`{after[0]}` is open." if after else "That was the last one."


@dataclass(frozen=True)
class Card:
    """The output of a warm-up's cell: a heading, sentences, a picture and perhaps an answer's code."""

    head: str
    text: str
    colour: str
    picture: str = ""
    code: str = ""

    def __repr__(self):
        return "\n".join(part for part in (f"{self.head} {self.text}", self.code) if part)

    def _repr_html_(self):
        from warplab.tasks.feedback import CODE

        return render("warplab.tasks", "warm_up.html.j2", card=self, code_spans=CODE.split)
