"""What a person reads: the autograded notebook's outputs and the feedback page."""

from autograder.report.notebook import autograded_notebook, read_autograded
from autograder.report.page import feedback_page

__all__ = ["autograded_notebook", "feedback_page", "read_autograded"]
