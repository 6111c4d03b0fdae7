"""The lab of the book: its experiments on a software adapter, in a real browser.

The adapter is the CPU, so no time is looked at here: that each kernel agrees with the CPU's own sum, that a
wrong one is seen, what is kept and shown, and that nothing hangs.
"""

import gzip
import http.server
import json
import threading
from functools import partial

import pytest
from conftest import ROOT

STATIC = ROOT / "chapters/_static"
EXPERIMENTS = sorted(path.stem for path in (STATIC / "lab/experiments").glob("*.js"))
SOFTWARE = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan")
PAGE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>lab</title>
<link rel="stylesheet" href="/_static/course.css"><link rel="stylesheet" href="/_static/lab/lab.css">
<body class="bd-article"><p class="lab-everything"></p>{figures}
<script type="module" src="/_static/lab/lab.js"></script>"""
FIGURE = """<figure class="lab" data-experiment="{name}" data-quick data-watchdog="{watchdog}">
<p class="lab-question">A question?</p><p class="lab-still">Without a script.</p>
<figcaption>Look.</figcaption></figure>"""
A_CHART = """<figure data-measured="transpose" data-axes='{"x": [100, 10000], "y": [1, 1000],
"box": [0.1, 0.2, 0.8, 0.6], "per": "bytes", "unit": 1e9}'>
<svg viewBox="0 0 500 300" width="500"></svg></figure>"""


class Server(http.server.SimpleHTTPRequestHandler):
    """The book's static files, and pages made up for the test."""

    pages: dict[str, str] = {}

    def do_GET(self):
        page = self.pages.get(self.path)
        if page is None:
            self.path = self.path.removeprefix("/_static")
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=STATIC))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="module")
def software(chromium):
    """A Chromium whose WebGPU is the CPU."""
    started = chromium(*SOFTWARE)
    yield started
    started.close()


@pytest.fixture
def context(software):
    made = software.new_context(viewport={"width": 900, "height": 900})
    yield made
    made.close()


def opened(context, address, *names, watchdog=60000, more="", width=None):
    """A page with the figures of these experiments; what its console complains of fails the test."""
    figures = "".join(FIGURE.format(name=name, watchdog=watchdog) for name in names)
    Server.pages = {
        "/": PAGE.format(figures=figures + more),
        "/favicon.ico": "",
    } | {path: text for path, text in Server.pages.items() if path.endswith(".js")}
    page = context.new_page()
    if width:
        page.set_viewport_size({"width": width, "height": 800})
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.goto(address)
    return page


def run(page, name):
    """(state, correct, status) after the experiment was asked for and has ended."""
    figure = page.locator(f"figure[data-experiment={name}]")
    figure.locator(".lab-run").click()
    return ended(page, name)


def ended(page, name):
    page.wait_for_function(
        f"document.querySelector('figure[data-experiment={name}]').dataset.state !== 'running'",
        timeout=180000,
    )
    figure = page.locator(f"figure[data-experiment={name}]")
    status = figure.locator(".lab-status").inner_text()
    return figure.get_attribute("data-state"), figure.get_attribute("data-correct"), status


def a_result(**changes):
    """An invented result as the lab keeps it, of a GPU that there is not."""
    points = [
        {"series": "naive", "x": 1024, "bytes": 8 << 20, "seconds": {"median": 1e-4, "q1": 9e-5, "q3": 2e-4}},
        {"series": "naive", "x": 99, "bytes": 8 << 20, "seconds": {"median": 1e-4, "q1": 9e-5, "q3": 2e-4}},
    ]
    for point in points:
        point["seconds"] |= {"samples": 7, "repeat": 40, "clock": "timestamps"}
    what = {
        "format": 1,
        "experiment": "transpose",
        "title": "Turning",
        "measured": "transpose",
        "x": "side",
        "per": "bytes",
        "adapter": {"name": "Test GPU", "driver": "", "software": False},
        "browser": "none",
        "taken": "2026-01-01",
        "timestamp_step_ns": 100000,
        "correct": True,
        "left": [],
        "points": points,
    }
    return what | changes


def keep(page, result):
    page.evaluate(
        "([k, v]) => localStorage.setItem(k, v)", [f"gpu-lab:{result['experiment']}", json.dumps(result)]
    )
    page.reload()


@pytest.mark.sampled(3)
@pytest.mark.browser
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_kernel_agrees_with_the_cpu(context, address, name):
    page = opened(context, address, name)
    assert page.locator("figure").get_attribute("data-state") == "idle"
    state, correct, status = run(page, name)
    assert (state, correct) == ("done", "true"), status
    assert "software adapter" in status and "no GPU's times" in status
    drawn = page.locator(".lab-plot svg[role=img]").get_attribute("aria-label")
    assert " at " in drawn and "NaN" not in drawn and "Infinity" not in drawn
    assert page.evaluate("localStorage.length") == 0, "a software adapter's times were kept"
    assert not page.problems


@pytest.mark.browser
def test_a_chapters_lab_is_a_button_until_it_is_pressed(context, address):
    """Nothing but small.js is loaded, and the keyboard goes on where the button was."""
    shown = FIGURE.format(name="transpose", watchdog=60000).replace("data-quick", "data-quick data-small")
    Server.pages = {
        "/": PAGE.format(figures=shown)
        .replace("lab.js", "small.js")
        .replace('<p class="lab-everything"></p>', ""),
        "/favicon.ico": "",
    }
    page, loaded = context.new_page(), []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    page.goto(address)
    button = page.get_by_role("button", name="Run on my GPU")
    assert [name for name in loaded if name.endswith(".js")] == ["small.js"]
    assert "Without" not in page.inner_text("figure")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("figure[data-state=done]", timeout=60000)
    assert page.locator("figure").get_attribute("data-correct") == "true" and "gpu.js" in loaded
    assert page.evaluate("document.activeElement.textContent") == "Run again"


WRONG = {  # what each kernel must not do, and what stands there instead
    "copy": ("out[i * STRIDE + OFFSET] = x[i * STRIDE + OFFSET]", "out[i * STRIDE + OFFSET] = x[i * STRIDE]"),
    "matmul": ("for (var k = 0u; k < N; k++)", "for (var k = 1u; k < N; k++)"),
    "reduction": ("for (var half = 128u;", "for (var half = 64u;"),
    "transpose": ("tile[t.x * 17u + t.y]", "tile[t.y * 17u + t.x]"),
    "launch": ("x[BEGIN + i] += 1.0", "x[i] += 1.0"),
    "divergence": ("if (path == mine)", "if (path + 1u == mine)"),
    "roofline": ("s < LENGTH", "s + 1u < LENGTH"),
    "crossover": ("c[i] = a[i] + b[i]", "c[i] = a[i] - b[i]"),
    "softmax": ("out[g.x * COLUMNS + i] /= sums[g.x]", "out[g.x * COLUMNS + i] /= sums[0]"),
}


@pytest.mark.sampled(2)
@pytest.mark.browser
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_wrong_kernel_is_seen_and_gets_no_time(context, address, name):
    right, wrong = WRONG[name]
    path = f"/_static/lab/experiments/{name}.js"
    code = (STATIC / path.removeprefix("/_static/")).read_text()
    assert code.count(right) == 1
    page = opened(context, address, name)
    context.route(
        f"**{path}",
        lambda route: route.fulfill(body=code.replace(right, wrong), content_type="text/javascript"),
    )
    state, correct, status = run(page, name)
    assert correct == "false" or (state == "error" and "no kernel gave" in status), status


@pytest.mark.browser
def test_keyboard_alone_runs_it_and_forgets_it(context, address):
    page = opened(context, address, "transpose")
    keep(page, a_result())
    figure = page.locator("figure.lab")
    assert figure.get_attribute("data-state") == "done", "what was kept is shown again"
    assert "Test GPU" in figure.locator(".lab-status").inner_text()
    page.locator(".lab-everything button").last.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Run again"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Forget"
    page.keyboard.press("Enter")
    assert figure.get_attribute("data-state") == "idle"
    assert page.evaluate("localStorage.length") == 0
    page.keyboard.press("Enter")  # the focus is back at the first button
    assert ended(page, "transpose")[0] == "done"
    assert not page.problems


@pytest.mark.browser
def test_a_kept_result_stands_in_the_chapters_figure(context, address):
    page = opened(context, address, "transpose", more=A_CHART)
    keep(page, a_result())
    marks = page.locator("figure[data-measured] svg .lab-yours path")
    assert marks.count() == 1, "the second point lies left of the axes"
    # 1,024 lies at log(10.24) / log(100) of the axis, 83.9 GB/s at log(83.9) / log(1000).
    across, up = 0.5 + 0.01030 / 2, 1.92368 / 3
    x, y = (0.1 + 0.8 * across) * 500, (1 - 0.2 - 0.6 * up) * 300
    begins = marks.get_attribute("d").removeprefix("M").split("l")[0].split()
    assert [float(at) for at in begins] == pytest.approx([x, y - 6], abs=0.05)
    said = page.locator("figure[data-measured] p.lab-yours").inner_text()
    assert "Test GPU" in said and "1 of 2 lie outside" in said and "83.9 GB/s" in said


@pytest.mark.sampled(2)
@pytest.mark.browser
@pytest.mark.parametrize("stored", ["{", '{"format": 0}', "null", "[]", '"x"'])
def test_what_cannot_be_read_is_as_if_nothing_were_kept(context, address, stored):
    page = opened(context, address, "copy")
    page.evaluate("v => localStorage.setItem('gpu-lab:copy', v)", stored)
    page.reload()
    assert page.locator("figure").get_attribute("data-state") == "idle"
    assert not page.problems


@pytest.mark.browser
def test_download_holds_the_result(context, address, tmp_path):
    page = opened(context, address, "transpose")
    keep(page, a_result())
    with page.expect_download() as got:
        page.get_by_role("button", name="Download", exact=True).click()
    assert got.value.suggested_filename == "my-gpu-transpose.json"
    got.value.save_as(tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text()) == a_result()


@pytest.mark.browser
@pytest.mark.parametrize(
    "missing, words",
    [
        ("Object.defineProperty(Navigator.prototype, 'gpu', {get: () => undefined})", "offers no WebGPU"),
        ("GPU.prototype.requestAdapter = async () => null", "found no GPU"),
        ("Object.defineProperty(window, 'isSecureContext', {get: () => false})", "https"),
    ],
)
def test_without_webgpu_it_says_why(context, address, missing, words):
    context.add_init_script(missing)
    page = opened(context, address, "copy")
    state, _, status = run(page, "copy")
    assert state == "unavailable" and words in status
    assert page.locator("figure .lab-run").is_enabled() and not page.problems


@pytest.mark.browser
def test_a_silent_gpu_is_given_up(context, address):
    context.add_init_script("GPUQueue.prototype.onSubmittedWorkDone = () => new Promise(() => {})")
    page = opened(context, address, "launch", watchdog=300)
    state, _, status = run(page, "launch")
    assert state == "error" and "had not answered after 0.3 s" in status
    assert page.evaluate("localStorage.length") == 0 and not page.problems


@pytest.mark.browser
def test_what_a_slow_gpu_would_not_finish_is_left_out_and_the_small_sizes_stand(context, address):
    path = "/_static/lab/experiments/divergence.js"
    code = (STATIC / path.removeprefix("/_static/")).read_text()
    far = code.replace("256 * (quick ? 16 : 2048)", "256 * 16").replace(
        "flops: 2", "flops: (quick ? 1 : 1e9) * 2"
    )
    assert far.count("1e9") == 1 and "2048" not in far
    page = opened(context, address, "divergence")
    context.route(f"**{path}", lambda route: route.fulfill(body=far, content_type="text/javascript"))
    page.evaluate("delete document.querySelector('figure').dataset.quick")
    state, correct, status = run(page, "divergence")
    assert (state, correct) == ("done", "true") and status.count("the same arithmetic at") == 7, status
    assert page.locator(".lab-plot svg[role=img]").count() == 1


@pytest.mark.browser
def test_a_lost_gpu_is_told_and_the_next_try_works(context, address):
    context.add_init_script(
        """const request = GPUAdapter.prototype.requestDevice; let first = true;
        GPUAdapter.prototype.requestDevice = async function (options) {
          const device = await request.call(this, options);
          if (first) setTimeout(() => device.destroy(), 50);
          first = false;
          return device;
        }"""
    )
    page = opened(context, address, "divergence")
    state, _, status = run(page, "divergence")
    assert state == "error" and "lost the GPU" in status
    assert run(page, "divergence")[0] == "done"


@pytest.mark.browser
def test_experiments_wait_for_each_other_and_can_be_stopped(context, address):
    page = opened(context, address, "softmax", "divergence")
    page.get_by_role("button", name="Run all").click()
    second = page.locator("figure[data-experiment=divergence]")
    assert "Waiting" in second.locator(".lab-status").inner_text()
    second.locator(".lab-run").click()  # stop, before its turn
    page.locator("figure[data-experiment=softmax] .lab-run").click()
    for name in ("softmax", "divergence"):
        state, _, status = ended(page, name)
        assert state == "idle" and "Stopped" in status


@pytest.mark.sampled(1)
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_sticks_out(context, address, scheme):
    page = opened(context, address, "transpose", width=390)
    keep(page, a_result())
    page.evaluate("s => document.documentElement.dataset.theme = s", scheme)
    for summary in page.locator("summary").all():
        summary.click()
    page.wait_for_function("document.querySelector('.lab-kernels code').textContent.includes('@compute')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.locator(".lab-plot text").evaluate_all(
        "all => all.map(t => t.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 11
    assert all(box["height"] >= 44 for box in (b.bounding_box() for b in page.locator("figure button").all()))


@pytest.mark.browser
def test_without_a_script_the_figure_still_says_what_it_is(software, address):
    context = software.new_context(java_script_enabled=False)
    page = opened(context, address, "copy")
    assert "Without a script." in page.inner_text("figure") and "Look." in page.inner_text("figure")
    context.close()


def test_the_lab_is_small_and_asks_no_one_else():
    files = [path for path in (STATIC / "lab").rglob("*") if path.is_file()]
    text = {path.name: path.read_text() for path in files}
    assert sum(len(gzip.compress(content.encode())) for content in text.values()) < 60_000
    for name, content in text.items():
        addresses = content.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in addresses and "https:" not in addresses, name
        assert not any(word in content for word in ("fetch(", "XMLHttpRequest", "sendBeacon", "WebSocket")), (
            name
        )
