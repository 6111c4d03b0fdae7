"""numba for the type checker, all of it Any: it has no types, what `@cuda.jit` decorates is no host code, and
numba-cuda puts its own `numba.cuda` in place of the one that lies in numba's folder only when it is imported.
"""

from typing import Any

def __getattr__(name: str) -> Any: ...
