"""Puts the book's hardware registry, chapters/specs, into the wheel: a student installs warplab without the book."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

REGISTRY = Path(__file__).resolve().parents[1] / "chapters" / "specs"


class BuildWithRegistry(build_py):
    """An editable install reads the registry in place; every other build copies it to warplab/_specs."""

    def run(self):
        super().run()
        if not self.editable_mode:
            shutil.copytree(REGISTRY, Path(self.build_lib) / "warplab" / "_specs", dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithRegistry})
