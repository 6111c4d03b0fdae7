"""The bundled class: six submissions for each problem set, and the grade that each must get.

build    makes them from the solutions by small edits (class.yml)
run      grades them and compares (expected.yml)
"""
