"""`autograder collect`: bring what was handed in elsewhere into submitted/, one notebook a student.

intake       whose each notebook is, which of several counts, and what is written
sources      reads --from: folders, archives, nbgrader's exchange, a list of repositories
archives     zip files, read in place: nothing is unpacked
platforms    the file names that Canvas and Moodle give
repositories git without a working tree: no hook or filter runs, no submodule or link is followed
"""
