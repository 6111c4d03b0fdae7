"""Evidence: experiments on GPUs, records of their results, figures that others published, and ``measure``,
which shows them with their origin.

experiments/  one module a theme                    catalogue.py  the list of experiments
declare.py    what an experiment is                 clocks.py     how a call is timed
take.py       runs an experiment, makes a record    record.py     the records, in results/
roofs.py      limits that no measurement exceeds    side_by_side.py  all evidence by GPU model
measure.py    live, recorded or published           __main__.py   `make record`
"""
