"""The student's side of the boundary: the only module that calls a student's objects. Plain data goes in and comes out.

Each crossing ("kernel", "function", "device") is one function (task, case, entry, plan) -> Outcome fields. Whatever the
student's code raises becomes one readable sentence; only Ctrl-C passes through.
"""

import copy
import json
import traceback
import warnings

import numpy as np

from warplab.plain import NotPlain, as_array

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_SHARED_BYTES = 48 * 1024


class Refused(Exception):
    """The submission cannot be run at all; the message is a sentence for the student."""


def run_kernel(task, case, entry, plan):
    """Launch the student's kernel once under the profiler. Returns (outputs, counters, modified)."""
    import warplab

    check_kernel(entry, task.entry)
    grid, block, shared = launch_shape(task, case, plan)
    arrays = {name: copy.deepcopy(value) for name, value in case.inputs.items()}
    outputs = {name: poisoned(shape, dtype) for name, (shape, dtype) in task.result(case.inputs).items()}
    arguments = [outputs[name] if name in outputs else arrays[name] for name in task.arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile = warplab.profile(entry[grid, block, 0, shared], *arguments)
    counters = {key: float(value) for key, value in profile.as_dict().items() if isinstance(value, int | float)}
    return outputs, counters, modified(case.inputs, arrays)


def run_timed(task, case, entry, plan):
    """Time the student's kernel against the task's yardstick on CUDA, once the result is there to be checked.

    Returns (outputs, counters, modified). Counters hold "time.seconds", "time.yardstick_seconds" (medians)
    and their quotient "time.ratio".
    Without CUDA nothing is run and all three are empty: the judge then calls the item ungraded.
    """
    from numba import cuda

    import warplab

    if warplab.device().kind != "cuda":
        return {}, {}, ()
    check_kernel(entry, task.entry)
    grid, block, shared = launch_shape(task, case, plan)
    held = {name: cuda.to_device(value) if type(value) is np.ndarray else value for name, value in case.inputs.items()}
    held |= {name: cuda.to_device(poisoned(*spec)) for name, spec in task.result(case.inputs).items()}
    arguments = [held[name] for name in task.arguments]
    student = warplab.bench(entry[grid, block, 0, shared], *arguments)
    yardstick = task.yardstick(case.inputs)
    counters = {"time.seconds": float(student.median), "time.yardstick_seconds": float(yardstick.median)}
    counters["time.ratio"] = counters["time.seconds"] / counters["time.yardstick_seconds"]
    return {name: held[name].copy_to_host() for name in task.result(case.inputs)}, counters, ()


def run_function(task, case, entry, plan):
    """Call the student's function on copies of the inputs. Returns (outputs, counters, modified)."""
    _check_callable(entry, task.entry)
    given = {name: copy.deepcopy(value) for name, value in case.inputs.items()}
    value = entry(*(given[name] for name in task.arguments))
    return read_results(task, value), {}, modified(case.inputs, given)


def run_device(task, case, entry, plan):
    """Hand the student a client of a judge-owned virtual device. Returns (outputs, counters, modified)."""
    _check_callable(entry, task.entry)
    device = task.device(case.inputs)
    value = entry(*task.device_arguments(device.connect(), case.inputs))
    return read_results(task, value), device.counters(), ()


CROSSINGS = {"kernel": run_kernel, "function": run_function, "device": run_device}


def check_kernel(entry, name):
    """Raise Refused unless `entry` is a launchable @cuda.jit kernel."""
    from numba.cuda.dispatcher import CUDADispatcher

    if type(entry) is not CUDADispatcher:
        what = "None" if entry is None else f"a {type(entry).__name__}"
        raise Refused(f"`{name}` must be a kernel, and it is {what}: put @cuda.jit above `def {name}(...)`")
    if entry.targetoptions.get("device"):
        raise Refused(f"`{name}` is a device function; a kernel has @cuda.jit without device=True")


def launch_shape(task, case, plan):
    """(grid, block, shared bytes), checked: from the student's plan where the task takes one, else the task's own."""
    if task.plan_entry is None:
        return checked_plan(task.plan(case.inputs), task.entry)
    if plan is None:
        raise Refused(f"this task also needs your launch plan: pass plan={task.plan_entry}")
    _check_callable(plan, task.plan_entry)
    return checked_plan(plan(**task.plan_arguments(case.inputs)), task.plan_entry)


def checked_plan(value, name):
    """Validate (grid, block) or (grid, block, shared_bytes); dimensions are ints or tuples of one to three ints."""
    if type(value) not in (tuple, list) or len(value) not in (2, 3):
        raise Refused(f"`{name}` must return (grid, block) or (grid, block, shared_bytes)")
    grid = _dimensions(value[0], "grid", MAX_GRID, name)
    block = _dimensions(value[1], "block", MAX_BLOCK, name)
    threads = int(np.prod(block))
    if threads > MAX_THREADS:
        raise Refused(f"`{name}` asks for {threads:,} threads a block, the limit is {MAX_THREADS:,}")
    shared = 0
    if len(value) == 3:
        shared = int(_whole(value[2], f"`{name}` must return shared_bytes as a whole number"))
    if not 0 <= shared <= MAX_SHARED_BYTES:
        raise Refused(f"`{name}` asks for {shared:,} bytes of shared memory, the limit is {MAX_SHARED_BYTES:,}")
    return grid, block, shared


def _dimensions(value, what, limits, name):
    sizes = value if type(value) in (tuple, list) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise Refused(f"`{name}` returned a {what} with {len(sizes)} dimensions; it has one to three")
    sizes = tuple(int(_whole(size, f"`{name}` must return whole numbers in the {what}")) for size in sizes)
    for size, limit in zip(sizes, limits, strict=False):
        if not 1 <= size <= limit:
            raise Refused(f"`{name}` returned {size:,} in the {what} {sizes}; each entry lies between 1 and {limit:,}")
    return sizes


def _whole(value, message):
    try:
        number = as_array(value, "integers")
    except NotPlain as problem:
        raise Refused(f"{message}: {problem}") from None
    if number.ndim:
        raise Refused(f"{message}, got a list")
    return number


def read_results(task, value):
    """Split what a function returned into the task's named results, as plain arrays."""
    if len(task.returns) == 1:
        values = (value,)
    elif type(value) in (tuple, list) and len(value) == len(task.returns):
        values = value
    else:
        got = f"{len(value)} values" if type(value) in (tuple, list) else "None" if value is None else "one value"
        raise Refused(f"`{task.entry}` returned {got}, expected {len(task.returns)}: {', '.join(task.returns)}")
    outputs = {}
    for (name, kind), item in zip(task.returns.items(), values, strict=True):
        try:
            outputs[name] = as_array(item, kind)
        except NotPlain as problem:
            raise Refused(f"`{name}`: {problem}") from None
    return outputs


def poisoned(shape, dtype):
    """A new array that is wrong wherever a kernel leaves it alone: full of NaN, or of scrambled bytes for integers."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype)
    noise = np.random.default_rng(0xDEAD).integers(0, 256, int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    return noise.view(dtype).reshape(shape)


def modified(before, after):
    """Names of the inputs that the student's code changed."""
    return tuple(name for name in before if not _unchanged(before[name], after[name]))


def _unchanged(before, after):
    if type(before) is np.ndarray:
        same_form = type(after) is np.ndarray and after.shape == before.shape and after.dtype == before.dtype
        return same_form and after.tobytes() == before.tobytes()
    if type(before) not in (list, dict):
        return True  # numbers and strings cannot be changed in place
    try:
        return json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    except (TypeError, ValueError):
        return False


def _check_callable(entry, name):
    if entry is None or not callable(entry):
        raise Refused(f"`{name}` must be a function, and it is {'None' if entry is None else 'a ' + type(entry).__name__}")


def explain(error):
    """One or two lines a student can act on: the message, and the line of the student's own code it came from."""
    import warplab

    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, warplab.LaunchError):
        return str(error)
    if isinstance(error, NotImplementedError):
        return "not written yet: the stub is still there" + _student_line(error)
    try:
        text = str(error).strip()
    except BaseException:  # noqa: BLE001 - a student's exception class may fail to print itself
        text = "(its message cannot be shown)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if type(error).__module__.startswith("numba"):
        lines = _numba_lines(lines)
    where = _student_line(error)
    head = f"{type(error).__name__}: {' '.join(lines[:3])[:400]}" if lines else type(error).__name__
    return f"{head}{where}"


def _numba_lines(lines):
    """numba's messages run to a page: keep what failed and the source line it points at."""
    if any("array>" in line or ".array at" in line for line in lines[:3]):
        return ["the shape of a shared or local array must be constants: numbers, or names set outside the kernel"]
    missing = next((line.removeprefix(">>>").strip() for line in lines if line.startswith(">>>")), None)
    if missing:
        return [f"a kernel cannot do `{missing}`"]
    noise = ("Failed in", "During:", "This error may", "-", "File ")
    place = [f"({line})" for line in lines if line.startswith("File ")]
    return [line for line in lines if not line.startswith(noise)][:2] + place[:1]


def _student_line(error):
    """' (line 7 of <cell>: `source`)' for the innermost frame outside this package and installed libraries."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "site-packages" in frame.filename or "/warplab/" in frame.filename or "/lib/python3" in frame.filename:
            continue
        source = f": `{frame.line[:80]}`" if frame.line else ""
        return f" (line {frame.lineno}{source})"
    return ""
