"""`autograder collect`: what was handed in somewhere else, brought into submitted/, one notebook a student.

intake       whose each notebook is, which of several counts, and what is written
sources      what lies at --from: folders, archives, an exchange, a list of repositories
archives     zip files, read in place: nothing is unpacked
platforms    the file names that Canvas and Moodle give
repositories git without a working tree: no hook, filter, submodule or link is ever followed
"""
