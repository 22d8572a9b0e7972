"""Where the links of built pages lead, and what their images say: read from the files alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LEADING = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}


@dataclass
class Page(HTMLParser):
    """What a page offers and asks for.

    Attributes:
        anchors: What a link may lead to in it.
        links: Addresses as they are written.
        images: Address and alternative text of each.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    images: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [given[LEADING[tag]]] if LEADING.get(tag) in given else []
        if tag == "img":
            self.images.append((given.get("src", ""), given.get("alt", "")))


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def pages(site: Path) -> dict[Path, Page]:
    """Every page of the site."""
    return {path: read(path) for path in sorted(site.rglob("*.html"))}


def astray(site: Path) -> Iterator[str]:
    """Links within the site that lead nowhere: to no file, or to no anchor of a page."""
    found = pages(site)
    for path, page in found.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:  # to somewhere else
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = found[target].anchors if target in found else set()
            lost = parts.fragment and target in found and unquote(parts.fragment) not in anchors
            if lost or not target.is_file() or not target.is_relative_to(site):
                yield f"{path.relative_to(site)}: {link}"


def mute(site: Path) -> Iterator[str]:
    """Images without words of their own: none, or the address once more."""
    for path, page in pages(site).items():
        for address, words in page.images:
            name = address.rpartition("/")[2]
            if not words.strip() or words.rpartition("/")[2] == name:
                yield f"{path.relative_to(site)}: {address}"
