"""The two distributions: data travels with its library, so an install elsewhere knows the same."""

import inspect
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT

CHECKOUT = ROOT / "autograder"

pytestmark = pytest.mark.slow


def what_the_library_says() -> dict:
    """Facts, prices, evidence and hints, as text."""
    from warplab.evidence.catalogue import experiments
    from warplab.evidence.measure import shown_without_running
    from warplab.hardware import prices, specs
    from warplab.tasks.hints import hints_for
    from warplab.tasks.registry import get, names

    holders = [*map(specs.get, specs.names()), *map(specs.for_arch, specs.archs())]
    shown = {name: shown_without_running(name) for name in experiments()}
    return {
        "facts": {
            f"{holder.key} {fact.name}": [fact.long_text(), fact.origin()]
            for holder in holders
            for fact in holder.values()
        },
        "prices": {key: [offer.hourly, offer.origin()] for key, offer in prices.every().items()},
        "electricity": prices.electricity(),
        "evidence": {name: [found.kind, found.banners, found.rows()] for name, found in shown.items()},
        "code": {name: experiment.code for name, experiment in experiments().items()},
        "hints": {
            f"{name} {row.key}": hints_for(name, row.key)
            for name in names()
            if name.startswith("ps")  # other tests declare tasks of their own
            for row in get(name).items
        },
    }


def what_a_student_has() -> dict:
    """What a first session touches, and whether anything is there that should not be."""
    import importlib.util

    import warplab
    from warplab.check import grade
    from warplab.tasks.registry import get

    def pick_gpu(cards, need, stage):
        answer = get("ps11/pick_gpu").reference({"cards": cards, "need": need, "stage": stage})
        return int(answer["card"])

    others = ("workshop", "tests", "conftest")
    return {
        "bandwidth": warplab.specs.get("h100-sxm")["memory_bandwidth"].text(),
        "measured": warplab.measure("matmul_by_size").kind,
        "points": grade("ps11/pick_gpu", pick_gpu),
        "besides": [name for name in others if importlib.util.find_spec(name)],
    }


@dataclass(frozen=True)
class Wheel:
    """A built wheel and what it was built from: every file of its packages, by its name in the wheel."""

    path: Path
    files: dict[str, bytes]


def built(folder, packages, root) -> Wheel:
    """The wheel of the distribution in `folder`, whose packages lie in `root`."""
    paths = [path for package in packages for path in (root / package).rglob("*") if path.is_file()]
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    files.pop("workshop/pyproject.toml", None)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", folder / "wheel", folder], check=True, capture_output=True)
    return Wheel(next((folder / "wheel").glob("*.whl")), files)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Wheel]:
    """The students' and the developers' wheel, built in a copy of the checkout."""
    copy = tmp_path_factory.mktemp("wheels") / "copy"
    made = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*", "corpus")
    shutil.copytree(CHECKOUT, copy, ignore=made)
    return {
        "developers": built(copy / "workshop", ["workshop"], copy),
        "students": built(copy, ["warplab", "autograder"], copy),
    }


def installed(place, wheels, *functions) -> list:
    """What `functions` return in a process that has these wheels, installed at `place`, and no checkout."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", place]
    subprocess.run([*install, *(wheel.path for wheel in wheels)], check=True, capture_output=True)
    code = [
        "import json, sys",
        f"sys.path[:] = [{str(place)!r}] + [path for path in sys.path if path != {str(CHECKOUT)!r}]",
        *map(inspect.getsource, functions),
        f"answers = [{', '.join(function.__name__ + '()' for function in functions)}]",
        "course = {'warplab', 'autograder', 'workshop'} & set(sys.modules)",
        "print(json.dumps([[sys.modules[name].__file__ for name in course], answers]))",
    ]
    asked = [sys.executable, "-P", "-c", "\n".join(code)]
    done = subprocess.run(asked, cwd=place.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files, answers = json.loads(done.stdout.splitlines()[-1])
    assert files and all(file.startswith(str(place)) for file in files)
    return answers


@pytest.fixture(scope="module")
def student(wheels, tmp_path_factory) -> list:
    """What the library says and what a student has where only the students' wheel is installed."""
    place = tmp_path_factory.mktemp("student") / "site"
    return installed(place, [wheels["students"]], what_the_library_says, what_a_student_has)


def as_json(answer):
    return json.loads(json.dumps(answer))


@pytest.mark.parametrize("whose", ["students", "developers"])
def test_a_wheel_holds_every_file_of_its_packages_and_nothing_else(wheels, whose):
    with zipfile.ZipFile(wheels[whose].path) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert held == wheels[whose].files


def test_the_library_says_away_from_the_checkout_what_it_says_in_it(student):
    assert student[0] == as_json(what_the_library_says())


def test_a_students_install_is_enough_to_work_and_holds_no_workshop_and_no_tests(student):
    assert student[1] == {"bandwidth": "3.35 TB/s", "measured": "recorded", "points": 15.0, "besides": []}


def test_the_developers_distribution_lists_every_package_of_the_workshop():
    about = tomllib.loads((CHECKOUT / "workshop" / "pyproject.toml").read_text())
    packages = {path.parent.relative_to(CHECKOUT) for path in (CHECKOUT / "workshop").rglob("__init__.py")}
    named = {package.replace(".", "/") for package in about["tool"]["setuptools"]["packages"]}
    assert named == {path.as_posix() for path in packages}
