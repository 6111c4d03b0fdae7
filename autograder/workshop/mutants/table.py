"""`python -m workshop mutants` on the terminal: progress, each survivor, and a table of all tasks."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from workshop.mutants.sweep import SURVIVED, Fate, Sweep, tallied

HEAD = ("task", "made", "equivalent", "killed", "survived", "lose points")


def survivors(console: Console, sweep: Sweep, jobs: int = 1) -> int:
    """Grade all mutants of a sweep and print the results; returns how many survived."""
    fates: list[Fate] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("mutants", total=sum(len(sweep.mutants(name)) for name in sweep.tasks))
        for fate in sweep.run(jobs):
            fates.append(fate)
            progress.update(bar, advance=1, description=fate.mutant.task)
            if fate.state == SURVIVED:
                told = f"{fate.mutant.task}: {fate.mutant.identity}   [{fate.mutant.operator}]"
                progress.console.print(told, markup=False, soft_wrap=True)
    table = Table(*HEAD)
    for name, made, equivalent, killed, survived in tallied(fates):
        share = f"{100 * killed / (killed + survived):.1f} %" if killed + survived else ""
        table.add_row(name, *map(str, (made, equivalent, killed, survived)), share)
    console.print(table)
    return sum(fate.state == SURVIVED for fate in fates)
