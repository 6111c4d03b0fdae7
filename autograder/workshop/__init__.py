"""Tools for building the book and for the course's authors; not part of what students install.

course.py       `make course`, step by step     book.py        builds the book and checks that it is complete
claims/         the claims ledger               conformance/   numba-cuda's own test suite on the engine
numerals.py     finds numbers in prose          bootstrap.py   `make venv`
contributed.py  records that readers send       serve.py       `make serve`
browser.py      finds Chromium                  editions/      `make editions`, the book as a PDF
slides/         `make slides`, lectures         gpu_hour.py    `make gpu-hour`, all that needs a GPU
mutants/        mutation testing of checks      new_task/      the skeleton of a new task
elsewhere.py    pages as stand-alone notebooks  from_scratch.py  a problem set without stubs
line_budget.py  lines of code of each room      writing.py     the record of a network that writes
"""
