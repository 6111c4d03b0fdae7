"""The process that runs student code: `python -m autograder.sandbox.worker FOLDER PIPE`. Holds no expected values and no scores.

It reads FOLDER/in, executes the student's cells in one namespace and each task's cases where its test cell stands, and
writes every outcome to FOLDER/out as soon as it is made. On the pipe it says which step begins.
"""

import linecache
import os
import resource
import sys
import types
from pathlib import Path

import warplab.task
from autograder.sandbox import messages
from warplab import crossing


def main(folder, pipe):
    """Run all steps of the request in `folder`; the pipe (a file descriptor) carries one line per step."""
    folder = Path(folder)
    request = messages.read(folder / "in" / "request.json")
    limit_resources(request["memory_mib"], request["file_mib"])
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    errors = {}
    for number, step in enumerate(request["steps"]):
        _say(pipe, f"begin {number}")
        if step["kind"] == "cell":
            error = execute(step, module.__dict__)
            if error:
                errors[step["id"]] = error
                messages.write(folder / "out" / f"cell-{number}.json", {"error": error})
        else:
            run_task(step, number, folder, module.__dict__, errors)
        _say(pipe, f"end {number}")
    _say(pipe, "done")
    os._exit(0)  # threads and atexit hooks of the student's have no say in how this ends


def limit_resources(memory_mib, file_mib):
    """Private writable memory, file size, no core dumps. Not the address space: the CUDA driver reserves far more than it uses."""
    for what, amount in ((resource.RLIMIT_DATA, memory_mib << 20), (resource.RLIMIT_FSIZE, file_mib << 20), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (amount, amount))


def execute(step, namespace):
    """Execute one cell. Returns None, or one sentence about what it raised."""
    name = f"<cell {step['id']}>"
    source = without_magics(step["source"])
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        exec(compile(source, name, "exec"), namespace)
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        return f"SyntaxError: {error.msg} (line {error.lineno})"
    except BaseException as error:  # SystemExit in a cell ends the cell in Jupyter too, not the notebook
        return crossing.explain(error)
    return None


def without_magics(source):
    """The cell without IPython's own syntax (%magic, !shell, trailing ?), line numbers unchanged."""
    lines = source.split("\n")
    return "\n".join("" if line.lstrip().startswith(("%", "!", "?")) and _is_magic(line) else line for line in lines)


def _is_magic(line):
    text = line.strip()
    return text[:1] in "!?" or text.lstrip("%")[:1].isalpha()


def run_task(step, number, folder, namespace, errors):
    """Run every case of one task and write each outcome at once."""
    task = warplab.task.get(step["task"])
    entry, plan = namespace.get(task.entry), namespace.get(task.plan_entry) if task.plan_entry else None
    for index in range(step["cases"]):
        case = warplab.task.Case(**messages.read(folder / "in" / f"case-{number}-{index}.json"))
        missing = next((name for name in (task.entry, task.plan_entry) if name and name not in namespace), None)
        if missing:
            reason = next((f"its cell stopped with {text}" for text in reversed(errors.values())), "no cell defines it")
            outcome = warplab.task.Outcome(case.name, error=f"`{missing}` does not exist: {reason}")
        else:
            outcome = warplab.task.run(task, case, entry, plan)
        try:
            messages.write(folder / "out" / f"case-{number}-{index}.json", vars(outcome))
        except (messages.BadMessage, ValueError, OSError) as problem:
            refused = warplab.task.Outcome(case.name, error=f"the result could not be sent back: {problem}")
            messages.write(folder / "out" / f"case-{number}-{index}.json", vars(refused))


def _say(pipe, text):
    os.write(pipe, f"{text}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
