"""Checks a submitted notebook as data: nothing that it says about points is used.

validate        reads a file and finds every defect
restore         restores what the student must not change
unfinished      what is not written yet, in a student's own notebook
public_checks   runs a student's own notebook, and shows the points of its public checks
"""

from autograder.validate.restore import Defect
from autograder.validate.validate import Checked, Malformed, check_file, checked, read_bytes

__all__ = ["Checked", "Defect", "Malformed", "check_file", "checked", "read_bytes"]
