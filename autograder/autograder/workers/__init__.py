"""Judging many submissions: on threads of this machine, on the workers of a Dask cluster, or elsewhere.

commission      the request to judge one submission, serialised
ruling          the answer, serialised, and its validation
machine_judge   answers commissions on any machine
pool            the interface that `autograder grade` uses, and its implementation by threads
dask_pool       the implementation by a Dask cluster
parcels         the implementation by files, for machines that share no network
connecting      connects to a running cluster, or starts workers for the run
event_log       the events of a run, for a person, a log and a program
interrupts      delays Ctrl-C until the next safe point
"""
