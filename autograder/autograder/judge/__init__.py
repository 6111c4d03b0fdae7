"""Makes the inputs, has the student's cells run in a sandbox, compares what came back, owns the points.

judge            a validated notebook to points
needed           which cells have to run for that
attempts         cells and questions in order, again after each crash
rank_processes   tasks of several ranks
timed_rows       tasks that are timed on a GPU
process          one jailed process: its time, its messages, its end
faults           errors that are no student's
"""
