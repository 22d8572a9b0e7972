"""The page: its parts joined into one file that needs no network and admits nothing foreign."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from posenc import __version__
from posenc.explorer.catalog import catalog
from posenc.explorer.modules import joined

POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
STYLES = ("base", "layout", "controls", "figures", "sections")
INCLUDE = re.compile(r"^[ \t]*<!-- include (\S+) -->\n", re.M)


@cache
def page() -> str:
    """The explorer as one HTML document.

    Its Content-Security-Policy names the one script and the one style by their hashes, and allows
    no connection at all.

    Example:
        >>> "default-src 'none'" in page()
        True
    """
    script, style = _sources()
    body = INCLUDE.sub(lambda match: _read(match[1]), _read("index.html"))
    parts = {"policy": policy(), "version": __version__, "catalog": catalog()}
    parts |= {"style": style, "script": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], body)


def policy() -> str:
    """The Content-Security-Policy of the page, for those who serve it."""
    script, style = map(_hash, _sources())
    return POLICY.format(script=script, style=style)


@cache
def _sources() -> tuple[str, str]:
    """The one script and the one style."""
    style = "\n".join(_read(f"style/{name}.css") for name in STYLES)
    return joined("main.js", _read), style


def _read(path: str) -> str:
    return files("posenc.explorer").joinpath("page", path).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
