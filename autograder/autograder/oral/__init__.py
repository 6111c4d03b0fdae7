"""`autograder oral`: a sheet of questions about a student's own lines, and what to look for in answers."""

from autograder.oral.sheet import questions_for, write_sheets

__all__ = ["questions_for", "write_sheets"]
