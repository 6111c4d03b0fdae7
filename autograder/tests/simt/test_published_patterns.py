"""Published ways to let blocks and warps work together stay silent. Each is found, with both lines, once one
thing in it is wrong: a fence or a barrier is missing or in the wrong place, or it looks at another flag.
"""

from pathlib import Path

import numpy as np
import pytest
import yaml
from test_race_patterns import verdict

from warplab.simt.sanitizer import vector_clocks as clocks

WORKED = yaml.safe_load(Path(__file__).with_name("published_patterns.yml").read_text())
BROKEN = [(name, number) for name, worked in WORKED.items() for number in range(len(worked["broken"]))]


def says(name: str, source: str) -> str:
    worked = WORKED[name]
    return verdict(source, worked["grid"], worked["block"], [an_argument(a) for a in worked["args"]])


def an_argument(given: str | int) -> np.ndarray:
    if isinstance(given, int):
        return np.int32(given)
    holds, dtype, size = given.split()
    return (np.zeros if holds == "zeros" else np.arange)(int(size), dtype=dtype)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("most", [1024, 32, 2])
@pytest.mark.parametrize("name", WORKED)
def test_what_is_published_is_silent_followed_by_thread_warp_or_block(monkeypatch, name, most):
    monkeypatch.setattr(clocks, "MOST", most)
    assert says(name, WORKED[name]["source"]) == ""


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name, number", BROKEN)
def test_one_thing_wrong_is_found_with_both_lines(name, number):
    source, (right, wrong) = WORKED[name]["source"], WORKED[name]["broken"][number]
    assert right in source
    text = says(name, source.replace(right, wrong))
    assert text.count("k.cu:") >= 2 and text.count("thread") >= 2 and "Look at: " in text
