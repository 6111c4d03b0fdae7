"""What a person reads: the autograded notebook's outputs and the feedback page."""

from autograder.report.page import Pages, judged_notebooks, read_autograded

__all__ = ["Pages", "judged_notebooks", "read_autograded"]
