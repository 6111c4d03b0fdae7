"""nbgrader's gradebook, written by one process, and the grades.csv made of it.

gradebook    points, late penalties and what a person entered, in nbgrader's own database
export       grades.csv
standing     each student's status and points in each set
passing_on   totals over several sets, and tables for other systems to import
late_policy  a late penalty in per cent a day
"""

from autograder.gradebook.export import write_csv
from autograder.gradebook.gradebook import ByHand, CourseGradebook, damaged

__all__ = ["ByHand", "CourseGradebook", "damaged", "write_csv"]
