"""A submitted notebook as data: nothing it says about points is believed; only one's own runs here.

validate    takes a file in and finds every defect
restore     puts back what the student must not change
public_checks   runs a notebook of one's own, and shows the points of its public checks
"""

from autograder.validate.restore import Defect
from autograder.validate.validate import Checked, Malformed, check_file, checked, read_bytes

__all__ = ["Checked", "Defect", "Malformed", "check_file", "checked", "read_bytes"]
