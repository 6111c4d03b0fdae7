"""From solutions/ps04_matmul.py to exercises/ps04/ps04_matmul.ipynb.

source                a solution file with its cell markers to nbgrader's source notebook (_build/source/)
release               the students' notebooks, made by nbgrader
sample_answer         the sample answers to written questions, with their rubrics
template_repository   the template of the students' git repositories
"""
