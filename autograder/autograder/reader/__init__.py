"""The reader: the sandboxed process that parses a submitted file.

reader      its main: answers two kinds of message; knows neither the assignment nor a seed
contents    from bytes to a flat list of cells: JSON, Jupyter's schema, sizes
needed      which given cells no other cell depends on; C++ inside Python
"""
