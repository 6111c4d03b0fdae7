"""Judging many submissions: on threads of this machine, on the workers of a Dask cluster, or elsewhere.

commission      what one submission's judge is asked, as bytes
ruling          what comes back, as bytes, and how it is checked
machine_judge   bytes to bytes: what a machine does of a commission, wherever it is
pool            the interface that `autograder grade` knows, and threads of this machine behind it
dask_pool       a Dask cluster behind it
parcels         files, for machines that share no network
connecting      to a running cluster, or to workers made for the run
happenings      what happened, for a person, a log and a program
"""
