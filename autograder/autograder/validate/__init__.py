"""A submitted notebook as data: nothing in it runs here, nothing it says about points is believed.

validate    reads a file and finds every defect
restore     puts back what the student must not change
"""

from autograder.validate.restore import Defect
from autograder.validate.validate import Checked, Malformed, check_file

__all__ = ["Checked", "Defect", "Malformed", "check_file"]
