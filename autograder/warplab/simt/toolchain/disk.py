"""Compiled text kept on disk from one process to the next: ``~/.cache/warplab``, JSON files.

A file's name is the hash of all that it was made from.
It can be deleted at any time. Processes may share it: a file appears whole or not at all. It holds text and
no code of ours, and a sandboxed student has a home, and so a cache, of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def kept(made_from: tuple, make: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """What ``make()`` returned when last called for ``made_from`` (JSON-able), in this process or another."""
    folder = Path.home() / ".cache" / "warplab"
    path = folder / f"{hashlib.sha256(json.dumps(made_from).encode()).hexdigest()}.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, list) and all(isinstance(text, str) for text in found):
            return tuple(found)
    except (OSError, ValueError):
        pass  # not there, or damaged: made again
    made = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, encoding="utf-8", delete=False) as file:
            json.dump(made, file)
        os.replace(file.name, path)
    except OSError:
        pass  # a read-only home or a full disk costs time, not the kernel
    return made
