"""`autograder oral`: a sheet of questions about a student's own lines, and what to look for in answers."""
