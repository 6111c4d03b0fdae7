"""Makes the inputs, has the student's cells run in a sandbox, compares what came back, owns the points."""

from autograder.judge.judge import Verdict, judge_notebook

__all__ = ["Verdict", "judge_notebook"]
