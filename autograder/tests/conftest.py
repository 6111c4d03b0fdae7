"""What all tests share. It imports nothing that a bare CUDA machine lacks: `make gpu-test` runs there too."""

import json
import sys
import warnings
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parents[1]
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type] # autograder/__init__.py says why


def pytest_addoption(parser):
    parser.addoption(
        "--at-most",
        type=int,
        metavar="N",
        help="run N evenly spaced cases of a test that has more (make quick)",
    )
    parser.addoption(
        "--lines",
        metavar="FILE",
        help="add a line of JSON for each test that ends; leave out those that passed there (make gpu-hour)",
    )


def pytest_collection_modifyitems(config, items):
    for cases in by_test(items):
        if sampled := cases[0].get_closest_marker("sampled"):
            cases = [item for item in cases if not item.get_closest_marker("full")]
            for item in set(cases) - set(evenly(cases, *sampled.args)):
                item.add_marker(pytest.mark.full)
    if config.getoption("--at-most"):
        thin_out(config, items, config.getoption("--at-most"))
    if (lines := config.getoption("--lines")) and Path(lines).exists():
        known = map(json.loads, Path(lines).read_text(encoding="utf-8").splitlines())
        passed = {one["test"] for one in known if one["outcome"] == "passed"}
        keep_those_that(config, items, lambda item: item.nodeid not in passed)
    skip_without_a_gpu(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    lines = item.config.getoption("--lines")
    if lines and (report.when == "call" or report.outcome != "passed"):
        told = {"test": report.nodeid, "outcome": report.outcome, "seconds": report.duration}
        with open(lines, "a", encoding="utf-8") as file:  # one write: other processes may write there, too
            file.write(json.dumps(told | {"properties": dict(item.user_properties)}, default=str) + "\n")
    return report


def skip_without_a_gpu(items):
    """Tests marked gpu are skipped, saying so, where there is no CUDA device."""
    import warplab

    if warplab.device().kind == "cuda":
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and this machine has none"))


def by_test(items):
    """The cases of each test."""
    cases = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    return cases.values()


def evenly(cases, most):
    return cases[:: max(1, -(-len(cases) // most))]


def thin_out(config, items, most):
    """Keep `most` evenly spaced cases of each parametrised test that has more; the
    others are counted as deselected.
    """
    kept = {item for cases in by_test(items) for item in evenly(cases, most)}
    keep_those_that(config, items, kept.__contains__)


def keep_those_that(config, items, wanted):
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]


@pytest.fixture(scope="session", autouse=True)
def graded_without_walls_where_none_stand():
    """The tests of grading run on every machine; where no sandbox works they run unsafe, and say so."""
    grade = sys.modules.get("autograder.grade")
    if grade is None:
        return
    from autograder.sandbox.choose import NoSandbox, choose

    try:
        choose()
    except NoSandbox as problem:
        for module in (grade, sys.modules.get("autograder.settings")):
            if module is not None:
                module.choose = lambda unsafe=False: choose(unsafe=True)
        warnings.warn(f"grading is tested without a sandbox: {problem}", stacklevel=1)


@pytest.fixture(scope="session")
def root() -> Path:
    """The course folder."""
    return ROOT


@pytest.fixture(scope="session")
def printed_in_book():
    """printed_in_book("07-precision") -> what the cells of a page printed when the book was built."""
    from jupyter_cache import get_cache
    from myst_nb.core.read import myst_nb_reader_plugin

    def printed(page):
        cache = get_cache(ROOT / "_build" / ".jupyter_cache")
        try:
            _, ran = cache.merge_match_into_notebook(
                myst_nb_reader_plugin(str(ROOT / "chapters" / f"{page}.md"))
            )
        except KeyError:
            pytest.skip("the book is not built as the page stands: run make book")
        outputs = [
            out for cell in ran.cells for out in cell.get("outputs", ()) if out.get("name") == "stdout"
        ]
        return "".join("".join(out["text"]) for out in outputs)

    return printed


@pytest.fixture(scope="session")
def chromium():
    """Starts a headless Chromium of the system with more arguments: chromium("--some-flag"). The tests
    that need it are skipped, saying so, where there is none.
    """
    from workshop.browser import MISSING, find_browser

    path = find_browser()
    if not path:
        pytest.skip(MISSING)
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    quiet = [
        "--no-sandbox",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    with sync_playwright() as playwright:
        yield lambda *more: playwright.chromium.launch(executable_path=path, args=[*quiet, *more])


@pytest.fixture(scope="session")
def browser(chromium):
    """A headless Chromium without a GPU."""
    started = chromium("--disable-gpu")
    yield started
    started.close()


@pytest.fixture(scope="session")
def book_address():
    """http://127.0.0.1:<free port> that serves the built book."""
    import threading

    from workshop import book, serve

    if missing := book.missing_pages(ROOT):
        pytest.skip(f"the book is not built ({', '.join(missing)} missing): run make book")
    server = serve.server(0, ROOT / "_build" / "html")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
