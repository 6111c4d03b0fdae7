"""Makes the inputs, has the student's cells run in a sandbox, compares the results, decides the points.

reading          a submitted file to a validated notebook, by a sandboxed reader
judge            a validated notebook to points
attempts         runs cells and asks questions in order, and again after each crash
rank_processes   tasks with several ranks
timed_rows       rows that are timed on a GPU
process          one sandboxed process: its time limit, its messages, how it ended
budget           what is left of a submission's limits
faults           errors that are not the student's
"""
