"""A submitted notebook as data: nothing in it runs here, and nothing it says about points or tests is believed."""

from autograder.validate.check import Checked, Defect, Malformed, check_file

__all__ = ["Checked", "Defect", "Malformed", "check_file"]
