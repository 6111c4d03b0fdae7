"""What a compiler's error means for those who pasted a kernel: sentences for what NVRTC words for itself."""

from __future__ import annotations

import re
import unicodedata

#: What NVRTC calls the kernel's name, which it compiles as a line of its own.
NAME_FILE = "__nv_name_map"

#: What NVRTC says of a name that several kernels have.
OVERLOADED = "cannot determine which instance of overloaded function"

_UNDEFINED = re.compile(r'identifier "([^"]+)" is undefined|has no member "([^"]+)"')
_MEANINGS = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (
            r'device-side kernel launch|identifier "cuda[A-Z]\w+" is undefined',
            "a kernel that launches kernels or calls CUDA's runtime (dynamic parallelism) does not run here: "
            "let the host do it",
        ),
        (
            r'identifier "__(shfl|shfl_up|shfl_down|shfl_xor|ballot|any|all)" is undefined',
            "CUDA has it as {0}_sync, with one argument more: first the mask of the lanes that take part, "
            "0xffffffff for all",
        ),
        (
            r'namespace "std" has no member|qualified name is not allowed\n.*\bstd\s*::',
            "a kernel has no containers, strings and streams of the host: it has plain arrays, and printf",
        ),
        (
            r'"(?:texture|surface)"|(?:texture|surface) is not a template',
            "texture and surface references are gone since CUDA 12: read a plain array, or __ldg(&array[i])",
        ),
        (
            r'"curand',
            "CUDA's generators of random numbers (cuRAND) are a package of their own: "
            "pip install nvidia-curand; else pass numbers in an array, or write a generator of your own",
        ),
    )
)


def meanings(lines: list[str]) -> list[str]:
    """A sentence on an error, the author's line below it; none for what it says well enough itself."""
    error = "\n".join(lines)
    unknown = _UNDEFINED.search(lines[0])
    name = unknown[1] if unknown else ""
    said = [f"  {text.format(name)}" for pattern, text in _MEANINGS if pattern.search(error)][:1]
    return said or _unknown_characters(lines)


def _unknown_characters(lines: list[str]) -> list[str]:
    """A sentence on the letter, quotation mark or space that the compiler takes for no token."""
    strange = [c for line in lines[1:] for c in line if not c.isascii()]
    if "unrecognized token" not in lines[0] or not strange:
        return []
    name = unicodedata.name(strange[0], "without a name").lower()
    return [
        f"  '{strange[0]}' (U+{ord(strange[0]):04X}, {name}) may stand in comments and strings alone: "
        "elsewhere NVRTC takes ASCII"
    ]


def worth_saying(errors: list[tuple[re.Match, str]]) -> tuple[re.Match, str]:
    """Of the errors (place, text) of one compilation the one that tells most: the first, or the unknown type
    in the parameters of a kernel, for which NVRTC first says that it does not take it for a function.
    """
    first, text = errors[0]
    if "does not apply here" not in text:
        return first, text
    same_line = [e for e in errors if e[0]["line"] == first["line"] and _UNDEFINED.search(e[1])]
    return (same_line or errors)[0]


def on_the_name(log: str, kernel: str, kernels: dict[str, bool]) -> str:
    """What is wrong with the name of a kernel that the source has, by NVRTC's errors on that name alone."""
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
            f"{name} stands under an #if that is not true here: "
            "put the #define that it asks for at the top of the source"
        )
    if name:
        return (
            f"the source has no {name} outside its functions; template arguments are types and "
            "constants, as in <float> or <16>"
        )
    error = re.search(r"error: (.*)", log)
    return f"the name {kernel}: {error[1]}" if error else ""
