"""What an instructor runs: release, validate, judge, record and report. `autograder --help` lists the verbs."""

__version__ = "0.1.0"
