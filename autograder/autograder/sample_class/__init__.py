"""The sample class: six submissions for each problem set, and the grade that each must get.

build    makes the submissions from the solutions by small edits (class.yml)
run      grades them and compares with expected.yml
"""
