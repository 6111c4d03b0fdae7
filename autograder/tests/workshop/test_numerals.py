"""The report on bare numerals: what it lists, and what it leaves alone."""

import pytest

from workshop.numerals import bare

PAGE = """---
title: 80 GB
---
# A page

An H100 reads 3.35 TB/s and has 16,896 cores. It has {spec}`h100-sxm memory_capacity`, or $2 \\cdot 80$ GB, `700 W`.
Somebody measured 2.75 TB/s {cite}`mt4g`. Nobody cited
this one: 700 W.

```{code-cell} ipython3
bandwidth = "3.35 TB/s"
```

:::{admonition} Careful: "128 GB/s"
A warp has 32 lanes, and a box is text too: 450 GB/s.
:::
"""


def test_it_lists_line_and_number_of_what_nothing_vouches_for():
    assert [(line, number) for line, number, _ in bare(PAGE)] == [
        (6, "3.35 TB/s"),
        (6, "16,896 cores"),
        (8, "700 W"),
        (14, "128 GB/s"),
        (15, "450 GB/s"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{spec}`h100-sxm tdp`",
        "`80 GB`",
        "$80$ GB",
        "80 GB {cite}`x`.",
        "in 2026",
        "80 times",
        "```\n80 GB\n```",
    ],
)
def test_it_leaves_alone_what_comes_from_the_registry_a_source_or_code(text):
    assert bare(text) == []
