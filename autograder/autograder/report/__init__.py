"""What a person reads: the autograded notebook's outputs and the feedback page."""

from autograder.report.notebook import autograded_notebook, judged_notebooks, read_autograded
from autograder.report.page import feedback_page
from autograder.report.pages import Pages

__all__ = ["Pages", "autograded_notebook", "feedback_page", "judged_notebooks", "read_autograded"]
