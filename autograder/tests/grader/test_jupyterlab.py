"""An exercise in JupyterLab, in a real browser, by keyboard alone.

Run the cells, write a solution, read its check, open the hints.
"""

import json
import os
import re
import shutil

import pytest
from conftest import ROOT
from jupyter_here import jupyter
from page_visits import FAINT

pytest.importorskip("jupyterlab")

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
ACTIVE = "+(document.querySelector('.jp-Notebook-cell.jp-mod-active')?.dataset.windowedListIndex ?? -1)"
READY = "#jp-main-statusbar :text('(ipykernel) | Idle')"  # the toolbar says idle before the kernel listens

# x and y swapped: pixels of a square are written, a column at a time; pixels of any other picture are not.
# The editor indents.
SWAPPED = """@cuda.jit
def grayscale(rgb, out):
row, col = cuda.grid(2)
if row < out.shape[0] and col < out.shape[1]:
out[row, col] = 0.299 * rgb[row, col, 0] + 0.587 * rgb[row, col, 1] + 0.114 * rgb[row, col, 2]"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """(address, folder of the notebooks, folder of the settings) of a JupyterLab.

    Nobody else's settings reach it.
    """
    home = tmp_path_factory.mktemp("jupyter")
    notebooks, settings = home / "notebooks", home / "settings"
    notebooks.mkdir()
    folders = {
        name: str(home / name.lower())
        for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    environment = os.environ | folders | {"JUPYTERLAB_SETTINGS_DIR": str(settings), "WARPLAB_DEVICE": "simt"}
    words = (
        f"--ServerApp.root_dir={notebooks}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    )
    with jupyter("lab", home / "lab.log", *words, env=environment) as address:
        yield address, notebooks, settings


def set_up(settings, theme):
    for plugin, value in (("themes", {"theme": THEMES[theme]}), ("notification", {"fetchNews": "false"})):
        path = settings / "@jupyterlab" / "apputils-extension" / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


def run_cell(page):
    """Shift+Enter, and the next cell is the active one."""
    here = page.evaluate(ACTIVE)
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(f"{ACTIVE} === {here + 1}")


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.full)])
def test_a_student_with_a_keyboard_and_no_mouse_solves_and_checks_a_task(browser, lab, theme):
    address, notebooks, settings = lab
    set_up(settings, theme)
    name = f"{theme}.ipynb"
    shutil.copy(ROOT / "exercises" / "ps01" / "ps01_pixels.ipynb", notebooks / name)
    cells = json.loads((notebooks / name).read_text(encoding="utf-8"))["cells"]
    stub = next(number for number, cell in enumerate(cells) if cell["id"] == "grayscale")
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        page, troubles = context.new_page(), []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(f"{address}/lab/tree/{name}?reset")
        page.wait_for_selector(READY, timeout=60_000)
        page.wait_for_function(f"{ACTIVE} === 0")
        for _ in range(stub):
            run_cell(page)

        page.keyboard.press("Enter")  # into the stub
        page.wait_for_function("document.activeElement.classList.contains('cm-content')")
        page.keyboard.press("Control+a")
        for number, line in enumerate(SWAPPED.split("\n")):
            page.keyboard.press("Enter") if number else None
            page.keyboard.type(line)
        run_cell(page)
        run_cell(page)
        page.wait_for_selector(".warplab-progress", timeout=60_000)
        shown = page.locator(".jp-OutputArea", has=page.locator(".warplab-grade")).first.inner_text()
        assert "ps01/grayscale: 0 of 18 points" in shown
        assert re.search(r"full points up to [\d,]+, none from [\d,]+", shown), shown
        assert (
            "ps01 so far: 0 of 95 points that checks give" in shown
            and "not checked since the kernel started: launch_plan" in shown
        )

        page.keyboard.press("ArrowUp")  # back to the cell of the check, and into what it shows
        opened = []
        for _ in range(12):
            page.keyboard.press("Tab")
            summary = page.evaluate(
                "document.activeElement.tagName === 'SUMMARY' && document.activeElement.textContent"
            )
            if summary:
                page.keyboard.press("Enter")
                page.wait_for_function("document.activeElement.parentElement.open")
                opened.append(summary)
        assert opened[0] == "Another hint" and "Counters" in opened
        assert "The last hint, nearly the answer" not in opened, "it opens after a second, changed attempt"
        assert page.locator(".warplab-grade code", has_text="busiest_warp_instructions").first.is_visible()

        for shown in (".warplab-grade", ".warplab-progress"):
            assert page.evaluate(FAINT.replace("'article'", f"'{shown}'")) == []
        page.set_viewport_size({"width": 520, "height": 900})
        page.keyboard.press("Escape")
        page.keyboard.press("Control+b")  # the file browser takes half of a narrow window
        page.wait_for_function("document.querySelector('.warplab-grade').clientWidth < 420")
        outputs = (
            "[...document.querySelectorAll('.jp-OutputArea-output:has(.warplab-grade, .warplab-progress)')]"
        )
        assert page.evaluate(f"{outputs}.map(output => output.scrollWidth - output.clientWidth)") == [0, 0]
        assert troubles == []
    finally:
        context.close()
