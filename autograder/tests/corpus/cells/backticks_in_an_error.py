"""15 points: an error's text of what patterns are tried on again and again: backticks, digits, brackets without an end."""


def launch_plan(width, height, block):
    raise ValueError("`" * 500 + "[1" * 500 + "at [" + "9" * 5000 + "`" * 5000)
