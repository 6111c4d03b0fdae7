"""A cache of compiled text on disk: JSON files in ``~/.cache/warplab``.

A file's name is the hash of everything that its content depends on. The folder can be deleted at any time.
Processes may share it, as files are written atomically. It holds no code of ours, and a sandboxed student has
a home of their own, and so a cache of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cached(made_from: tuple, make: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """The result of ``make()``, from the cache if it has been called for ``made_from`` (JSON-able) before."""
    folder = Path.home() / ".cache" / "warplab"
    path = folder / f"{hashlib.sha256(json.dumps(made_from).encode()).hexdigest()}.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, list) and all(isinstance(text, str) for text in found):
            return tuple(found)
    except (OSError, ValueError):
        pass  # missing or damaged: make it again
    made = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, encoding="utf-8", delete=False) as file:
            json.dump(made, file)
        os.replace(file.name, path)
    except OSError:
        pass  # with a read-only home or a full disk there is no cache
    return made
