"""From solutions/ps04_matmul.py to exercises/ps04/ps04_matmul.ipynb, and back.

source      the marks in a solution file, and nbgrader's source notebook made of it (_build/source/)
release     the students' notebooks, by nbgrader
imported    an edited source notebook into the solution file
template_repository   what each student's repository is made of
"""

from autograder.release.imported import import_edits
from autograder.release.release import release

__all__ = ["import_edits", "release"]
