"""One visit to a page of the built book, and all that tests want to know of it: the page is opened once,
seen in four settings, and read by axe in the first of them.

axe/axe.min.js is axe-core 4.14.1 (MPL-2.0, its licences beside it), as the npm package axe-core has it.
"""

# ruff: noqa: E501  (lines of JavaScript)
from pathlib import Path
from urllib.parse import urlsplit

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
# Violations of WCAG 2.2 at A and AA and of axe's best practice: `rule: the first element that breaks it`.
# Drawings for another width, which nobody is shown, need not be read.
CHECK = """async () => {
  for (const svg of document.querySelectorAll('article figure > svg')) {
    if (getComputedStyle(svg).display === 'none') { svg.unread = svg.innerHTML; svg.replaceChildren(); }
  }
  const { violations } = await axe.run(document, {
    resultTypes: ['violations'], selectors: false, preload: false,
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']});
  for (const svg of document.querySelectorAll('article figure > svg')) if (svg.unread) svg.innerHTML = svg.unread;
  return violations.map(
    rule => `${rule.id} (${rule.nodes.length}): ${rule.nodes[0].html.slice(0, 160)}`);
}"""
PHONE_DARK, DESKTOP_LIGHT = (390, "dark"), (1440, "light")
PHONE_LIGHT, DESKTOP_DARK = (390, "light"), (1440, "dark")
SETTINGS = PHONE_DARK, DESKTOP_LIGHT, PHONE_LIGHT, DESKTOP_DARK
# What waits until a reader is near is there when it is judged.
LAID_OUT = ".bd-article > section > section { content-visibility: visible !important }"
NEAR = """async () => {
  for (const figure of document.querySelectorAll('figure.explorable, figure.warplab-step')) {
    figure.scrollIntoView();
    await new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)));
  }
  scrollTo(0, 0);
}"""
STARTED = """() => [...document.querySelectorAll('figure.explorable')].every(figure => 'live' in figure.dataset)
  && [...document.querySelectorAll('figure.warplab-step')].every(figure => figure.stepper)"""
LOADED = """async () => { await document.fonts.ready;
  return ['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))
    .map(entry => [new URL(entry.name).pathname, entry.encodedBodySize]); }"""
DRAWN = (
    "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn))))"
)

# Pictures of the article that say nothing to a screen reader. An SVG counts when it, or
# the figure around it, has a name.
NAMELESS = """() => [...document.querySelectorAll('article img, article svg, article canvas')].filter(picture => {
  if (picture.closest('[aria-hidden="true"], a.headerlink, button, .sd-summary-icon, .sd-octicon')) return false;
  if (picture.parentElement.closest('svg')) return false;
  const named = node => node && (node.getAttribute('alt') || node.getAttribute('aria-label') || node.getAttribute('aria-labelledby'));
  const title = picture.tagName === 'svg' && picture.querySelector('title');
  return !(named(picture) || (title && title.textContent.trim()) || named(picture.closest('[role=img], [role=figure], figure')));
}).map(picture => picture.outerHTML.slice(0, 120))"""

# Elements that stick out of the page to the right, the widest first, when the page itself scrolls sideways.
OVERFLOW = """() => {
  const page = document.documentElement, limit = page.clientWidth + 1;
  const cut = [...document.querySelectorAll('span.math')].filter(node => getComputedStyle(node).overflow !== 'visible');
  if (page.scrollWidth <= limit) return cut.map(node => `the formula ${node.textContent} is cut off`);
  const out = [...document.querySelectorAll('main *')].filter(node => node.getBoundingClientRect().right > limit);
  return out.slice(0, 5).map(node => `${node.tagName}.${node.className} reaches ${Math.round(node.getBoundingClientRect().right)} px`)
    .concat([`the page is ${page.scrollWidth} px wide in a window of ${page.clientWidth}`]);
}"""

# Words of one drawing that lie on each other, in CSS pixels; lines of text that only touch do not count.
MEETING = """() => [...document.querySelectorAll('article figure svg')].flatMap(svg => {
  const words = [...svg.querySelectorAll('text')].filter(text => text.textContent.trim() && text.getClientRects().length);
  const boxes = words.map(text => text.getBoundingClientRect());
  const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
  return boxes.flatMap((a, i) => boxes.slice(i + 1).flatMap((b, j) =>
    shared(a, b, 'left', 'right') > 1.5 && shared(a, b, 'top', 'bottom') > 6
      ? [`${svg.closest('figure').id}: ${words[i].textContent} on ${words[i + 1 + j].textContent}`] : []));
})"""

# Text below the 4.5 : 1 of WCAG 2 against what stands behind it: `ratio tag.class
# colour on background: text`, each kind once.
FAINT = """() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = colour => { const [r, g, b] = colour.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = node => { for (; node; node = node.parentElement) { const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.9) return colour; } return [255, 255, 255]; };
  const faint = new Map(), walk = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !node.getClientRects().length || node.closest('svg, script, style')) continue;
    const ink = getComputedStyle(node).color, paper = behind(node), [a, b] = [light(numbers(ink)), light(paper)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.set(`${node.tagName}.${node.className} ${ink} on ${paper}`, `${ratio.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return [...faint].map(([kind, example]) => `${kind}: ${example}`);
}"""

# Of each figure that shows words: its id, and the median height of its letters in CSS pixels.
LABELS = """() => [...document.querySelectorAll('article figure')].map(figure => {
  const sizes = [...figure.querySelectorAll('svg text')]
    .filter(text => text.textContent.trim() && text.getClientRects().length)
    .map(text => {
      const m = text.getScreenCTM();
      return parseFloat(getComputedStyle(text).fontSize) * Math.sqrt(Math.abs(m.a * m.d - m.b * m.c));
    }).sort((a, b) => a - b);
  return sizes.length ? [figure.id, sizes[sizes.length >> 1]] : null;
}).filter(Boolean)"""
NUMBERS = """() => [...document.querySelectorAll('article :is(.warplab-figure, .explorable)')]
  .map(figure => figure.querySelector('.figure-number')?.innerText)"""


def listen(page, url):
    """A list that fills with console errors, failed and foreign requests."""
    troubles, home = [], urlsplit(url).netloc
    page.on(
        "console", lambda message: message.type == "error" and troubles.append(f"console: {message.text}")
    )
    page.on("pageerror", lambda error: troubles.append(f"uncaught: {error}"))
    page.on("requestfailed", lambda request: troubles.append(f"failed: {request.url}"))
    page.on("response", lambda reply: reply.status >= 400 and troubles.append(f"{reply.status}: {reply.url}"))
    page.on(
        "request",
        lambda request: (
            urlsplit(request.url).scheme in ("http", "https")
            and urlsplit(request.url).netloc != home
            and troubles.append(f"asks a third party: {request.url}")
        ),
    )
    return troubles


def set_to(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.evaluate(DRAWN)


def violations(page):
    page.evaluate(AXE)
    return page.evaluate(CHECK)


def opened(browser, url, setting):
    """The page, laid out whole, in a fresh profile; `troubles` and `loaded` say what it met and fetched."""
    width, scheme = setting
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page.troubles = listen(page, url)
    page.goto(url, wait_until="load")
    page.loaded = page.evaluate(LOADED)
    page.add_style_tag(content=LAID_OUT)
    page.evaluate(NEAR)
    page.wait_for_function(STARTED)
    return page


def visit(browser, url, first):
    """What one visit finds, of which `first` is the setting that axe sees."""
    page = opened(browser, url, first)
    try:
        found = {"loaded": page.loaded, "axe": violations(page), "settings": {}}
        for setting in (first, *(other for other in SETTINGS if other != first)):
            set_to(page, *setting)
            found["settings"][setting] = {
                "theme": page.evaluate("document.documentElement.dataset.theme"),
                "overflow": page.evaluate(OVERFLOW),
                "meeting": page.evaluate(MEETING),
                "nameless": page.evaluate(NAMELESS),
                "faint": page.evaluate(FAINT),
            }
            if setting == PHONE_DARK:
                found["labels"] = page.evaluate(LABELS)
        return found | {"numbers": page.evaluate(NUMBERS), "troubles": page.troubles}
    finally:
        page.close()
