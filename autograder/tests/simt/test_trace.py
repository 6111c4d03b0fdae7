"""step(): one warp of a launch, instruction by instruction, as data and as a page."""

import json
import re

import numpy as np
import pytest
from numba import cuda, float32

import warplab
from warplab.simt.engine.indices import index_text

F32 = np.float32


@cuda.jit
def two_jobs(x, group):
    i = cuda.grid(1)
    v = x[i]
    if i // group % 2 == 0:
        for _ in range(24):
            v = v * v + F32(0.25)
    else:
        for _ in range(24):
            v = abs(v - F32(0.5))
    x[i] = v


@cuda.jit
def shifted(x, out):
    tile = cuda.shared.array((4, 33), float32)
    i = cuda.threadIdx.x
    tile[1, i] = x[i, 1]
    cuda.syncthreads()
    if i < 20:
        out[i] = tile[1, 31 - i]


CPP = """__global__ void twice(float* x) {
    int i = threadIdx.x;
    if (i < 5)
        x[i] = 2 * x[i];
}"""


def texts(trace):
    return [trace.listing[step.place].text for step in trace.steps]


def touching(trace):
    return [(trace.listing[step.place], access) for step in trace.steps for access in step.accesses]


@pytest.mark.slow
def test_a_trace_has_the_instructions_that_the_profile_counts():
    x = np.ones(32, F32)
    counted = warplab.profile(two_jobs[1, 32], x, 1)
    trace = warplab.step(two_jobs[1, 32], x, 1)
    assert len(trace.steps) == trace.issued == counted.warp_instructions
    assert sum(step.lanes.bit_count() for step in trace.steps) == counted.thread_instructions


def test_at_the_branch_of_two_jobs_the_lanes_part_and_at_the_store_they_have_met():
    trace = warplab.step(two_jobs[1, 32], np.ones(32, F32), 1)
    parted = [s for s in trace.steps if s.jumps not in (None, 0, s.lanes)]
    assert [s.jumps in (0xAAAAAAAA, 0x55555555) for s in parted] == [True]
    assert all("bra" in trace.listing[s.place].text for s in trace.steps if s.jumps is not None)
    store = next(s for s in trace.steps if trace.listing[s.place].text.startswith("st.global"))
    assert store.lanes == 0xFFFFFFFF
    assert {s.lanes for s in trace.steps} == {0xFFFFFFFF, 0xAAAAAAAA, 0x55555555}


def test_with_the_jobs_in_separate_warps_no_lane_waits():
    trace = warplab.step(two_jobs[1, 64], np.ones(64, F32), 32, warp=1)
    assert {s.lanes for s in trace.steps} == {0xFFFFFFFF}


def test_each_access_names_its_array_its_element_and_its_cost():
    x, out = np.arange(128, dtype=F32).reshape(32, 4), np.zeros(32, F32)
    trace = warplab.step(shifted[1, 32], x, out)
    (_, load), (_, put), (_, get), (_, store) = touching(trace)
    assert (load.name, load.kind, load.shape, load.offsets[:2]) == ("x", "read", (32, 4), (4, 20))
    assert load.cost == (16, 4)  # rows of 16 bytes: two lanes a sector
    assert (put.name, put.shape, put.offsets[0], put.cost) == ("tile", (4, 33), 4 * 33, (1, 1))
    assert (get.kind, get.lanes, get.offsets[:2]) == ("read", (1 << 20) - 1, (4 * 64, 4 * 63))
    assert (store.name, store.lanes, len(store.offsets)) == ("out", (1 << 20) - 1, 20)
    assert np.array_equal(out[:20], x[31:11:-1, 1])


def test_barrier_branch_and_end_are_told_apart():
    trace = warplab.step(shifted[1, 32], np.zeros((32, 4), F32), np.zeros(32, F32))
    kinds = [trace.listing[s.place].kind for s in trace.steps]
    assert kinds.count("barrier") == 1
    assert kinds[-1] == "exit" and texts(trace)[-1] == "ret"
    barrier = next(i for i in trace.listing if i.kind == "barrier")
    (part,) = trace.sources
    assert part["lines"][barrier.line - part["first"]].strip() == "cuda.syncthreads()"


@pytest.mark.filterwarnings("ignore::warplab.GlobalConflict")
def test_any_block_and_the_last_half_empty_warp_can_be_followed():
    x = np.zeros(4 * 40, F32)
    trace = warplab.step(two_jobs[(3, 2), 40], x, 1, block_index=(2, 1), warp=1)
    (_, load), (_, store) = touching(trace)
    assert trace.threads == 8 and load.lanes == 0xFF
    assert load.offsets[0] == store.offsets[0] == 4 * (2 * 40 + 32)  # cuda.grid(1) counts along x only


def test_a_block_or_a_warp_that_is_not_there_is_named():
    with pytest.raises(warplab.InvalidLaunch, match=r"block_index=\(4, 0, 0\) is not in the grid"):
        warplab.step(two_jobs[4, 32], np.zeros(128, F32), 1, block_index=4)
    with pytest.raises(warplab.InvalidLaunch, match="warp=1: a block of 32 threads has warps 0 to 0"):
        warplab.step(two_jobs[4, 32], np.zeros(128, F32), 1, warp=1)
    with pytest.raises(warplab.ProfileError, match="configured kernel"):
        warplab.step(two_jobs, np.zeros(128, F32), 1)


def test_a_long_trace_is_cut_off_and_says_so():
    trace = warplab.step(two_jobs[1, 32], np.ones(32, F32), 1, most=50)
    assert len(trace.steps) == 50 and trace.cut
    assert trace.issued == warplab.profile(two_jobs[1, 32], np.ones(32, F32), 1).warp_instructions
    assert f"The first 50 of {trace.issued} instructions" in trace._repr_html_()
    assert trace.note in str(trace)
    assert not warplab.step(two_jobs[1, 32], np.ones(32, F32), 1).cut


def test_cuda_cpp_shows_its_own_lines():
    kernel = warplab.cuda_kernel(CPP, "twice")
    trace = warplab.step(kernel[1, 32], np.ones(32, F32))
    store, access = touching(trace)[-1]
    (part,) = trace.sources
    assert part["lines"][store.line - part["first"]].strip() == "x[i] = 2 * x[i];"
    assert access.lanes == 0b11111


def test_following_a_warp_changes_no_result():
    x, y = np.linspace(0, 1, 64, dtype=F32), np.linspace(0, 1, 64, dtype=F32)
    two_jobs[2, 32](x, 1)
    warplab.step(two_jobs[2, 32], y, 1)
    assert np.array_equal(x, y)


def test_a_page_needs_nothing_but_itself():
    shown = warplab.step(two_jobs[1, 32], np.ones(32, F32), 1)._repr_html_()
    assert not re.search(r"""(src|href)=["'](?!data:)""", shown)
    assert len(shown) < 40_000


def test_source_text_cannot_leave_the_data(tmp_path):
    kernel = warplab.cuda_kernel(CPP.replace("int i", "/* </script><b> */ int i"), "twice")
    shown = warplab.step(kernel[1, 32], np.ones(32, F32))._repr_html_()
    assert shown.count("</script>") == 2 and "<b>" not in shown


@pytest.mark.browser
def test_the_page_names_elements_and_lanes_as_the_engine_does(browser):
    """100 random launches: shape, order, lanes and offsets; what the script says of each request."""
    random = np.random.default_rng(0)
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    seen = 0
    for _ in range(20):
        shape = tuple(map(int, random.integers(32, 70, 2)))
        order = random.choice(["C", "F"])
        places = random.integers(0, shape[0] * shape[1], 160).astype(np.int32)
        x = np.asfortranarray(np.zeros(shape, F32)) if order == "F" else np.zeros(shape, F32)
        for warp in range(5):
            trace = warplab.step(gathered[1, 160], x, places, np.zeros(160, F32), warp=warp)
            page.set_content(trace._repr_html_())
            told = page.evaluate(
                "() => { const { stepper } = document.querySelector('figure'); "
                "return Object.keys(stepper.trace.accesses).map((n) => stepper.at(Number(n))) }"
            )
            asked = [(s, a) for s in trace.steps for a in s.accesses]
            assert len(told) == len(asked) >= 3
            for said, (step, access) in zip(told, asked, strict=True):
                (request,) = said["accesses"]
                assert said["text"] == trace.listing[step.place].text
                assert sum(1 << lane for lane in said["lanes"]) == step.lanes
                assert request["elements"] == [
                    index_text(offset // access.itemsize, access.shape, access.order)
                    for offset in access.offsets
                ]
                assert request["offsets"] == list(access.offsets)
                seen += access.name == "x"
    assert seen == 100 and not problems


@cuda.jit
def gathered(x, places, out):
    i = cuda.grid(1)
    out[i] = x[places[i] // x.shape[1], places[i] % x.shape[1]]


@pytest.mark.browser
def test_the_stepper_goes_forwards_back_and_to_the_next_access_by_keyboard(browser):
    page = browser.new_page()
    trace = warplab.step(two_jobs[1, 32], np.ones(32, F32), 1)
    page.set_content(trace._repr_html_())
    page.locator("input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".said").inner_text().startswith(f"Step 3 of {len(trace.steps)}")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Back"
    assert page.locator(".said").inner_text().startswith("Step 2 of")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "All 32 lanes take part. They read x[0] to x[31]: 4 sectors." in page.locator(".said").inner_text()
    assert page.locator(".lanes div.on").count() == 32
    page.keyboard.press("Enter")
    assert "They write x[0] to x[31]" in page.locator(".said").inner_text()
    page.keyboard.press("Enter")  # there is no further one
    assert "They write x[0] to x[31]" in page.locator(".said").inner_text()


@pytest.mark.browser
def test_a_notebook_that_takes_keys_for_itself_does_not_get_the_steppers(browser):
    page = browser.new_page()
    page.set_content(warplab.step(two_jobs[1, 32], np.ones(32, F32), 1)._repr_html_())
    page.evaluate("document.addEventListener('keydown', (event) => event.preventDefault(), true)")
    page.locator("input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".said").inner_text().startswith("Step 2 of")


@pytest.mark.browser
def test_on_paper_the_map_and_the_lines_of_source_stay(browser):
    page, trace = browser.new_page(), warplab.step(two_jobs[1, 32], np.ones(32, F32), 1)
    page.set_content(trace._repr_html_())
    assert page.locator(".still").is_hidden() and page.locator(".live").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".still").is_visible() and page.locator(".live").is_hidden()
    assert (
        page.locator(".map img")
        .get_attribute("alt")
        .startswith(f"32 rows, one a lane, over {len(trace.steps)} instructions")
    )


def test_the_data_are_what_the_trace_says():
    trace = warplab.step(two_jobs[1, 32], np.ones(32, F32), 1)
    data = json.loads(json.dumps(trace.as_dict()))
    places = [first + i for first, many in data["places"] for i in range(many)]
    assert places == [step.place for step in trace.steps]
    assert [mask for _, mask in data["runs"]] == [0xFFFFFFFF, *(lanes for _, _, lanes in trace.runs[1:])]
    assert {int(n): jumps for n, jumps in data["jumps"].items()} == {
        n: step.jumps for n, step in enumerate(trace.steps) if step.jumps is not None
    }
