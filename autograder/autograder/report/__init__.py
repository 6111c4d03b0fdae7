"""What a person reads: the autograded notebook's outputs and the feedback page."""

from autograder.report.feedback import feedback_page
from autograder.report.notebook import autograded_notebook

__all__ = ["autograded_notebook", "feedback_page"]
