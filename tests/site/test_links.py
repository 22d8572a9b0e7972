"""Every link within the site leads somewhere, every image has words, and no markup is left over."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

LEADING = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}
AS_WRITTEN = {"pre", "code", "script", "style", "math", "title"}
"""What looks like markup there is meant."""

LEFT = re.compile(
    r"\|[-—–]"  # rows of a table
    r"|\]\("  # links
    r"|(?<!, )\*\*\w[^*]*\*\*"  # strong words, and not **named in a signature
    r"|``|\{[a-z]+:[a-z]+\}|:tags:"  # code, roles, options
)


@dataclass
class Page(HTMLParser):
    """What a page offers and asks for, and its words outside code."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    images: list[tuple[str, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    within: int = 0

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [given[LEADING[tag]]] if LEADING.get(tag) in given else []
        self.within += tag in AS_WRITTEN
        if tag == "img":
            self.images.append((given.get("src", ""), given.get("alt", "")))

    def handle_endtag(self, tag: str) -> None:
        self.within -= tag in AS_WRITTEN

    def handle_data(self, data: str) -> None:
        self.words += [] if self.within else [data]


def read(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


def astray(site: Path) -> Iterator[str]:
    """Links within the site that lead nowhere: to no file, or to no anchor of a page."""
    pages = {path: read(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:  # to somewhere else
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            lost = parts.fragment and target in pages and unquote(parts.fragment) not in anchors
            if lost or not target.is_file() or not target.is_relative_to(site):
                yield f"{path.relative_to(site)}: {link}"


def mute(page: Page) -> list[str]:
    """Images without words of their own: none, or the address once more."""
    return [
        address
        for address, words in page.images
        if not words.strip() or words.rpartition("/")[2] == address.rpartition("/")[2]
    ]


def left_over(page: Page) -> list[str]:
    """Markup in the prose of a page, with some words around it."""
    text = "".join(page.words)
    return [text[max(0, m.start() - 30) : m.end() + 30] for m in LEFT.finditer(text)]


@pytest.mark.slow("reads the site that `make docs` has built")
def test_every_link_of_the_site_leads_somewhere(site):
    assert list(astray(site)) == []


@pytest.mark.slow("reads the site that `make docs` has built")
def test_every_image_has_words_and_no_page_shows_markup(site):
    pages = {path.name: read(path.read_text("utf-8")) for path in site.rglob("*.html")}
    assert sum(len(page.images) for page in pages.values()) > 20, "the gallery alone shows more"
    found = {name: mute(page) + left_over(page) for name, page in pages.items()}
    assert {name: said for name, said in found.items() if said} == {}
