"""No page of the site shows markup where it should show what is meant by it."""

import re
from html.parser import HTMLParser

import pytest

AS_WRITTEN = {"pre", "code", "script", "style", "math", "title"}
"""What looks like markup there is meant."""

LEFT = re.compile(
    r"\|[-—–]"  # rows of a table
    r"|\]\("  # links
    r"|(?<!, )\*\*\w[^*]*\*\*"  # strong words, and not **named in a signature
    r"|``|\{[a-z]+:[a-z]+\}|:tags:"  # code, roles, options
)


class Prose(HTMLParser):
    """The words of a page outside code."""

    def __init__(self):
        super().__init__()
        self.within, self.words = 0, []

    def handle_starttag(self, tag, _):
        self.within += tag in AS_WRITTEN

    def handle_endtag(self, tag):
        self.within -= tag in AS_WRITTEN

    def handle_data(self, data):
        self.words += [] if self.within else [data]


def left_over(html: str) -> list[str]:
    """Markup in the prose of a page, with some words around it."""
    prose = Prose()
    prose.feed(html)
    text = "".join(prose.words)
    return [text[max(0, m.start() - 30) : m.end() + 30] for m in LEFT.finditer(text)]


@pytest.mark.parametrize(
    "text",
    ["<p>| a |<br>|—|</p>", "<p>**strong** said</p>", "<p>see [a](b)</p>", "<p>{py:mod}`a`</p>"],
)
def test_what_was_not_understood_is_found(text):
    assert left_over(text)


@pytest.mark.parametrize(
    "text", ["<p>a</p><pre>|---|</pre>", "<p>f(x, **named)</p>", "<p><code>**a**</code> * b</p>"]
)
def test_what_is_meant_is_left_alone(text):
    assert left_over(text) == []


@pytest.mark.slow("reads the site that `make docs` has built")
def test_no_page_shows_markup(site):
    found = {path.name: left_over(path.read_text()) for path in site.rglob("*.html")}
    assert {name: shown for name, shown in found.items() if shown} == {}
