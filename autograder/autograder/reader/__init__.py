"""The reader: the process that looks into a submitted file, and what it knows of notebooks and of Python.

reader      the role: answers two questions, and knows neither the assignment nor a seed
contents    from bytes to a flat list of cells: JSON, Jupyter's schema, sizes
needed      which given cells nothing depends on; C++ inside Python
"""
