"""Draw .github/book.png, the README's picture: the built book on a desktop in light and on a phone in dark.

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
PHONE = ("04-matmul", ".cell:has(.warplab-profile)", 390, 800, "dark")


def screenshot(chromium, name, top, width, height, scheme):
    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(f"{(ROOT / '_build' / 'html' / 'chapters' / name).as_uri()}.html")
    page.wait_for_timeout(1500)
    page.evaluate("top => { document.querySelector(top).scrollIntoView({behavior: 'instant'}) }", top)
    page.wait_for_timeout(500)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def main():
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser or not (ROOT / "_build" / "html" / "index.html").exists():
        sys.exit("picture: needs Chromium and a built book (apt-get install chromium; make book)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        desktop, phone = screenshot(chromium, *DESKTOP), screenshot(chromium, *PHONE)
        chromium.close()
    gap = 24
    picture = Image.new("RGB", (desktop.width + gap + phone.width, desktop.height), "white")
    picture.paste(desktop, (0, 0))
    picture.paste(phone, (desktop.width + gap, 0))
    picture.quantize(255, dither=Image.Dither.NONE).save(ROOT / ".github" / "book.png", optimize=True)


if __name__ == "__main__":
    main()
