"""Evidence: experiments, the records that they leave, what others published, and
``measure``, which says which of these it shows.

experiments/  what is measured, a module a theme    catalogue.py  the list of them    declare.py  what one is
clocks.py     how a call is timed                   take.py       run one and note on what
record.py     what is written, in results/          roofs.py      what no measurement can exceed
measure.py    live, recorded or published           __main__.py   `make record`
"""
