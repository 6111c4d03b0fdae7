"""Finds Chromium, which prints the editions and opens pages in tests. Uses the standard library only."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium: install one (Debian and Ubuntu: apt-get install chromium) or set CHROMIUM to its path"


def find_browser() -> str | None:
    """Path of a Chromium: $CHROMIUM if set, else the first one on PATH; None without one."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
