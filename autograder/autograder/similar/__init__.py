"""`autograder similar`: answers that are more alike than independent ones are. For a person, never points.

tokens       a program without what a copyist changes
pairs        how alike two answers are, what was given taken off
measured.yml the threshold, and the measurement that it comes from
compared     the groups of a graded class, as a table and as a page with both texts
"""

from autograder.similar.compared import groups, similar_answers, write_page
from autograder.similar.pairs import Pair, threshold

__all__ = ["Pair", "groups", "similar_answers", "threshold", "write_page"]
