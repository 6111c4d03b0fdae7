"""Draw the README's pictures of the built book: .github/book.png, a desktop in light and a phone in dark, and
.github/stride.gif, in which sliders of a figure in chapter 5 are dragged.

Run after `make book`: .venv/bin/python .github/picture.py
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
# page, what stands at the top of the picture, width and height in CSS pixels, colour scheme
DESKTOP = ("01-pixels", "#thirty-two-at-a-time", 1180, 800, "light")
# slider, where it is dragged to, and how long it stays there, in milliseconds
DRAGGED = (
    *(("stride", stride, 400) for stride in range(1, 8)),
    *(
        ("stride", 8, 1800),
        ("stride", 16, 400),
        ("stride", 32, 1800),
        ("stride", 1, 900),
        ("offset", 1, 1800),
    ),
)
PHONE = ("04-matmul", ".cell:has(.warplab-profile)", 390, 800, "dark")


def screenshot(chromium, name, top, width, height, scheme):
    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(f"{(ROOT / '_build' / 'html' / 'chapters' / name).as_uri()}.html")
    page.wait_for_timeout(1500)
    page.evaluate("top => { document.querySelector(top).scrollIntoView({behavior: 'instant'}) }", top)
    page.wait_for_timeout(500)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def dragged(chromium):
    """The figure of strides as its sliders move; its caption is left out."""
    page = chromium.new_page(viewport={"width": 1180, "height": 900}, color_scheme="light")
    page.goto((ROOT / "_build/html/chapters/05-memory.html").as_uri())
    figure = page.locator("#explorable-access")
    figure.scroll_into_view_if_needed()
    page.wait_for_timeout(1500)
    page.add_style_tag(content="#explorable-access :is(figcaption, button) { display: none }")
    move = "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input', {bubbles: true})) }"
    pictures = []
    for slider, value, _ in DRAGGED:
        page.locator(f"#access-{slider}").evaluate(move, value)
        page.wait_for_timeout(100)
        pictures.append(Image.open(io.BytesIO(figure.screenshot())).convert("RGB"))
    return pictures


def main():
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser or not (ROOT / "_build" / "html" / "index.html").exists():
        sys.exit("picture: needs Chromium and a built book (apt-get install chromium; make book)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        desktop, phone = screenshot(chromium, *DESKTOP), screenshot(chromium, *PHONE)
        first, *others = (picture.quantize(64, dither=Image.Dither.NONE) for picture in dragged(chromium))
        chromium.close()
    gap = 24
    picture = Image.new("RGB", (desktop.width + gap + phone.width, desktop.height), "white")
    picture.paste(desktop, (0, 0))
    picture.paste(phone, (desktop.width + gap, 0))
    picture.quantize(255, dither=Image.Dither.NONE).save(ROOT / ".github" / "book.png", optimize=True)
    times = [time for _, _, time in DRAGGED]
    first.save(ROOT / ".github" / "stride.gif", save_all=True, append_images=others, duration=times, loop=0)


if __name__ == "__main__":
    main()
