"""The commands, a module for each phase of a course. They only parse, print and set the exit status."""
