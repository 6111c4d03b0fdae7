"""`autograder similar`: finds answers more alike than independent ones are. A person decides; no points move.

tokens       a program's tokens without what a copyist would change
pairs        the similarity of two answers, without the code that both were given
measured.yml the threshold, and the measurement that it comes from
compared     the groups of a graded class, as a table and as a page with both texts
"""

from autograder.similar.compared import groups, similar_answers, write_page
from autograder.similar.pairs import Pair, threshold

__all__ = ["Pair", "groups", "similar_answers", "threshold", "write_page"]
