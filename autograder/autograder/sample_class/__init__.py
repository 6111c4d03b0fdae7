"""The bundled class: six submissions for each problem set, and the grade that each must get.

build    makes them from the solutions by small edits (class.yml)
run      grades them and compares (expected.yml)
"""

from autograder.sample_class.build import build_class
from autograder.sample_class.run import compare, expected_grades, grade_sample

__all__ = ["build_class", "compare", "expected_grades", "grade_sample"]
