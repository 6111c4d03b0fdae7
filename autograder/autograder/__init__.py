"""The grader: release, validate, judge, record and report. `autograder --help` lists the commands.

cli, show            the command line, and what it prints
layout, discover     where a course keeps released problem sets and submitted notebooks
release, validate    packages: solutions/ to exercises/; what is wrong with a submitted notebook
grade, results       one run over a class; the stored results that let the next run skip what is graded
judge, sandbox       packages: points for a notebook; the sandbox around students' code
executor             package: the process that runs kernels
gradebook, report    packages: nbgrader's database and grades.csv; the feedback pages
doctor               which of the sandbox's protections work on this machine
sample_class         package: a sample class and the grades that it must get
plugins              what replaces parts of nbgrader's own commands and of formgrader
user_error           the exception whose message the user reads
"""

import sys

__version__ = "0.1.0"

# jsonschema, which nbformat imports, uses this package to check one format that no notebook's schema has.
# Its import compiles 38 grammars, over a second of processor time in each process. None in sys.modules makes
# the import fail as if the package were not installed.
sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]
