"""What an instructor runs: release, validate, judge, record and report. `autograder --help` lists the verbs.

cli, show            the command line, and what it prints
layout, discover     where a course keeps things: released problem sets, handed-in notebooks
release, validate    rooms: solutions/ to exercises/; what is wrong with a submitted notebook
grade, results       one run over a class, and its memory
judge, sandbox       rooms: points for a notebook; walls around other people's code
executor             room: the process that runs kernels
gradebook, report    rooms: nbgrader's database and grades.csv; what a person reads
doctor               which of the sandbox's walls stand on this machine
sample_class         room: a class of ours with the grades that it must get
plugins              our places in nbgrader's own commands
user_error           the exception that a person is meant to see
"""

import sys

__version__ = "0.1.0"

# jsonschema, which nbformat imports, asks for this package to check one format that no notebook's schema has;
# its import compiles 38 grammars, over a second of processor time in each process. None says: not installed.
sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]
