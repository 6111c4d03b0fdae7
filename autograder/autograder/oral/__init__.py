"""`autograder oral`: a sheet of questions about a student's own code, and what to look for in the answers."""
