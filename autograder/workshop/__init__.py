"""The workshop: what only the book and those who build the course need. No student's install holds it.

course.py    `make course`, step by step     book.py         Jupyter Book, and whether the build is whole
claims/      the ledger and its arithmetic   conformance/    numba-cuda's own test suite on the engine
numerals.py  numbers that prose states       bootstrap.py    `make venv`
contributed.py  records that readers send    serve.py       `make serve`
browser.py   the Chromium of this machine    editions/    `make editions`
slides/      `make slides`, a lecture for each chapter
gpu_hour.py  all that is wanted of a GPU that is lent for minutes
"""
