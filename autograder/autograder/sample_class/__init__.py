"""The bundled class: six submissions for each problem set, made from the solutions by small edits, and the grade each must get."""

from autograder.sample_class.build import build_class
from autograder.sample_class.run import compare, expected_grades, grade_sample

__all__ = ["build_class", "compare", "expected_grades", "grade_sample"]
