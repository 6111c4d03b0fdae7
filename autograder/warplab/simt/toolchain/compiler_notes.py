"""Explains errors of the compilers (NVRTC, numba, Triton, Python) in sentences that a student understands."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import yaml

#: The file name in NVRTC's errors about the kernel's name, which it compiles as a line of its own.
NAME_FILE = "__nv_name_map"

#: NVRTC's message for a name that several kernels have.
OVERLOADED = "cannot determine which instance of overloaded function"

_UNDEFINED = re.compile(r'identifier "([^"]+)" is undefined|has no member "([^"]+)"')


@functools.cache
def _table() -> dict[str, list[tuple[re.Pattern[str], str, str]]]:
    entries = yaml.safe_load((Path(__file__).parent / "compiler_words.yml").read_text(encoding="utf-8"))
    return {
        compiler: [(re.compile(one["says"]), one["means"], one.get("line", "")) for one in mine]
        for compiler, mine in entries.items()
    }


def translated(compiler: str, error: str, worded: Callable[[str], str] = str) -> tuple[str, str]:
    """(explanation of an error, regular expression of the line that it is about), by compiler_words.yml;
    ("", "") for an error that is not there.

    ``compiler``: a key of that file, such as "numba", "nvrtc", "triton" or "python". ``worded`` translates
    the parts that the error quotes.
    """
    for says, means, looks in _table()[compiler]:
        if found := says.search(error):
            return means.format(*(worded(one) for one in found.groups() if one)), looks
    return "", ""


def triton_message(text: str) -> str:
    """Triton's error on a kernel as one clause, with the author's line; "" for other texts."""
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines) if line.strip() == "^"), 0)
    place = re.match(r"at (\d+):\d+:\n", text)
    if not (end and place or text.startswith("Unsupported function referenced: ")):
        return ""
    if place and "raise NotImplementedError()" in lines[end - 1]:
        return f"not written yet: line {place[1]} of the kernel is `raise NotImplementedError()`"
    said = re.sub(r"^\w+\((['\"])(.*)\1\)$", r"\2", " ".join(lines[end + 1 if place else 0 :]))
    where = f" (line {place[1]} of the kernel: `{lines[end - 1].strip()[:80]}`)" if place else ""
    meant = translated("triton", said)[0] or said[:300]
    return f"does not compile: {meant}{where}"


def notes_on(lines: list[str]) -> list[str]:
    """A list with an explanation of an error of NVRTC, given with its source line; [] if it needs none."""
    meant, _ = translated("nvrtc", "\n".join(lines))
    return _unknown_characters(lines) or ([f"  {meant}"] if meant else [])


def _unknown_characters(lines: list[str]) -> list[str]:
    """An explanation for a non-ASCII letter, quotation mark or space that the compiler does not accept."""
    strange = [c for line in lines[1:] for c in line if not c.isascii()]
    if "unrecognized token" not in lines[0] or not strange:
        return []
    name = unicodedata.name(strange[0], "without a name").lower()
    return [
        f"  '{strange[0]}' (U+{ord(strange[0]):04X}, {name}) may be used only in comments and strings: "
        "elsewhere NVRTC accepts only ASCII"
    ]


def most_helpful(errors: list[tuple[re.Match, str]]) -> tuple[re.Match, str]:
    """The most helpful of the errors (place, text) of one compilation. It is the first, except for a kernel
    with an unknown type in its parameters, where a later error on the same line names the type.
    """
    first, text = errors[0]
    if "does not apply here" not in text:
        return first, text
    same_line = [e for e in errors if e[0]["line"] == first["line"] and _UNDEFINED.search(e[1])]
    return (same_line or errors)[0]


def name_error(log: str, kernel: str, kernels: dict[str, bool]) -> str:
    """A message for a kernel's name that NVRTC refuses although the source has the kernel; "" if unclear."""
    base = kernel.partition("<")[0].strip()
    if OVERLOADED in log:
        return (
            f"several kernels are named {base}: give each a name of its own, or name one "
            f"with its parameters, as in (void(*)(float*, int)){base}"
        )
    if base != kernel.strip() and kernels.get(base) is False:
        return f"{base} is no template: its name is {base} alone"
    if "instance of function template" in log:
        return f"{kernel} does not fit the parameters of the template {base}: how many, of which kind"
    unknown = _UNDEFINED.search(log)
    name = unknown[1] or unknown[2] if unknown else ""
    if name and any(name == known.rpartition("::")[2] for known in kernels):
        return (
            f"{name} is inside an #if that is false here: "
            "put the #define that it tests at the top of the source"
        )
    if name:
        return (
            f"the source has no {name} outside its functions; template arguments are types and "
            "constants, as in <float> or <16>"
        )
    error = re.search(r"error: (.*)", log)
    return f"the name {kernel}: {error[1]}" if error else ""
