"""A submitted notebook as data: nothing in it runs here, nothing it says about points is believed.

validate    takes a file in and finds every defect
restore     puts back what the student must not change
"""

from autograder.validate.restore import Defect
from autograder.validate.validate import Checked, Malformed, check_file, checked, read_bytes

__all__ = ["Checked", "Defect", "Malformed", "check_file", "checked", "read_bytes"]
