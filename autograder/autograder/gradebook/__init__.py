"""nbgrader's gradebook, written by one process, and the grades.csv made of it."""

from autograder.gradebook.book import Book
from autograder.gradebook.export import write_csv

__all__ = ["Book", "write_csv"]
