"""Adds a link "Ask or correct" to each section's heading: the repository's issue form for it.

Only if html_theme_options in _config.yml name a repository on GitHub (`repository_url`), which book.yml adds
when it publishes.
"""

from __future__ import annotations

import html
import re
from functools import partial
from urllib.parse import quote, urlsplit

FORM = "wrong-in-the-book.yml"  # in .github/ISSUE_TEMPLATE; its field `where` gets the section
HEADING = re.compile(r'(<h2>(.*?)<a class="headerlink"[^>]*>[^<]*</a>)', re.DOTALL)


def plain(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", markup)).split())


def link(repository: str, title: str, heading: re.Match) -> str:
    place = quote(f'{title}, "{plain(heading[2])}"', safe="")
    url = html.escape(f"{repository.rstrip('/')}/issues/new?template={FORM}&where={place}")
    return f'{heading[1]}<a class="ask" href="{url}">Ask or correct</a>'


def add(app, pagename, templatename, context, doctree) -> None:
    repository = (app.config.html_theme_options or {}).get("repository_url", "")
    if "body" in context and urlsplit(repository).hostname == "github.com":
        title = plain(context.get("title", ""))
        context["body"] = HEADING.sub(partial(link, repository, title), context["body"])


def setup(app) -> dict:
    app.connect("html-page-context", add, priority=940)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
