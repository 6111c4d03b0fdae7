"""nbgrader's gradebook, written by one process, and the grades.csv made of it.

gradebook    points, late penalties and what a person entered, in nbgrader's own database
export       grades.csv
"""

from autograder.gradebook.export import write_csv
from autograder.gradebook.gradebook import ByHand, CourseGradebook

__all__ = ["ByHand", "CourseGradebook", "write_csv"]
