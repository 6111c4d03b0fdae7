"""nbgrader's gradebook, written by one process, and the grades.csv made of it.

gradebook    points, late penalties and what a person entered, in nbgrader's own database
export       grades.csv
standing     what each student has in each set by now
passing_on   totals over several sets, and what other systems import
late_policy  so many per cent a day
"""

from autograder.gradebook.export import write_csv
from autograder.gradebook.gradebook import ByHand, CourseGradebook, damaged

__all__ = ["ByHand", "CourseGradebook", "damaged", "write_csv"]
