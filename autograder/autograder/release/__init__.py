"""From solutions/ps04_matmul.py to exercises/ps04/ps04_matmul.ipynb.

source      the marks in a solution file, and nbgrader's source notebook made of it (_build/source/)
release     the students' notebooks, by nbgrader
template_repository   what each student's repository is made of
"""
