"""The door that notebooks use: ``from warplab.check import grade``.

What stands behind it, warplab.tasks and warplab.puzzles, is imported at the first call: where a submission is
judged, the door is there and the tasks are not.
"""

import contextlib

from warplab.hardware.packages import needs

__all__ = ["climb", "grade", "needs", "predict", "puzzle", "when_written"]


def grade(name, submission, plan=None, rubric=None):
    """Run the public cases of one task on `submission`, show what was checked, return the points as a float.

    How points come about. Write what a cell asks for and run the test cell under it, as often as you like. A
    table shows which checks your code passes, what each is worth, and a hint where points are missing, with
    two more to open behind it, the last nearly the answer. Your final grade comes from the same checks with
    other sizes and other numbers, so code that knows only the sizes in the notebook loses points. A race, a
    barrier that not all threads reach, a lane that is missing from an exchange and a value that nobody has
    set cost at least a quarter of the task, also where your numbers come out right. A set has 100 points,
    and a star marks its hard task. Five of the points come from a person who reads your last answer: about
    150 words, in which a wrong prediction costs nothing.

    With or without a GPU. The notebook is the same. Without one, your kernels are compiled by the real CUDA
    compiler and executed by the course's SIMT engine; with one, launches run on the GPU. The counters in the
    tables always come from the engine, so those points do not depend on your machine. Points for time need a
    CUDA GPU: without one they stay open, which is not lost, and your instructor's machine may fill them in.

    name: for example "ps04/matmul_tiled". plan: your launch plan, for the tasks that ask for one.
    rubric: None for everything but the timed rows, "time" for the timed rows alone (not graded without CUDA).
    """
    from warplab.tasks import feedback

    return feedback.grade(name, submission, plan, rubric)


def puzzle(name, answer):
    """Say what there is to say to your answer to a small puzzle: `puzzle("ps05/same_word", 32)`. No points.

    answer: a number, a word or a function, in the place of the `...` that the notebook comes with.
    """
    from warplab.puzzles import blank

    blank.ask(name, answer)


def predict(predicted, count, found="counted"):
    """Show what you said beside what was counted, when everything is said: `predict({33: ...}, wavefronts)`.

    predicted: {what: your number, in the place of the `...` that the notebook comes with}. count: a function
    that gives the number for one of them. Returns whether it was counted. No points.
    """
    from warplab.puzzles import prediction

    return prediction.compare(predicted, count, found)


def climb(name=None, launch=None, *args, note=""):
    """Count one version of the product that sets 4, 5, 7 and 13 climb, and draw it above those before.

    name: of the version, such as "tiles"; the same name again takes the old row's place. launch: for example
    matmul_tiled[grid, block]. args: a, b and what else it takes; the last array, NaN before, gets a @ b.
    note: your sentence on what this version does less often. The log is climb.json, beside the sets' folders.
    Without arguments: the whole log, and its table to hand in. No points.
    """
    from warplab.puzzles import climb as log

    log.climb(name, launch, *args, note=note)


@contextlib.contextmanager
def when_written():
    """Around a demonstration: where a task is still its stub, say so instead of stopping the notebook."""
    try:
        yield
    except Exception as error:
        if "NotImplementedError()" not in f"{error!r} {error}":  # Triton quotes the stub's line
            raise
        print("not written yet: run this cell again when the task above is done")
