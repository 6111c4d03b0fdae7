"""Before the package of this name where tests start nbgrader: autograder/__init__.py says why."""

raise ImportError("left out by the tests")
