"""The page as a file, in a notebook and by its command: small, whole, closed to what is foreign."""

import base64
import hashlib
import re
from html import unescape

from tests.explorer.conftest import SECTIONS

import posenc
from posenc.encodings import base, bias
from posenc.explorer import page, show
from posenc.explorer.bundling import catalog, policy

INTERFACES = {
    "Added to tokens": base.TokenEncoding,
    "Turning queries and keys": base.QueryKeyEncoding,
    "Changing scores": base.ScoreEncoding,
}


def test_it_is_small_and_whole():
    assert len(page().encode()) <= 400_000
    assert re.findall(r'<section id="([^"]+)"', page()) == SECTIONS
    assert f'name="version" content="{posenc.__version__}"' in page()
    assert "{{" not in re.sub(r"<script.*?</script>", "", page(), flags=re.S)
    assert "<!-- include" not in page()


def test_the_policy_admits_its_own_script_and_style_and_nothing_else():
    [script] = re.findall(r"<script[^>]*>(.*?)</script>", page(), flags=re.S)
    [style] = re.findall(r"<style>(.*?)</style>", page(), flags=re.S)
    told = dict(part.strip().split(" ", 1) for part in policy().split(";"))
    assert told["default-src"] == told["base-uri"] == told["form-action"] == "'none'"
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert told[name] == f"'sha256-{digest}'"


def test_every_public_encoding_stands_in_its_place_in_the_catalog():
    assert catalog() in page()
    parts = re.split(r"<h3>(.*?)</h3>", catalog())[1:]
    names = (", ".join(re.findall(r"<dt>(.*?)</dt>", text)).split(", ") for text in parts[1::2])
    listed = dict(zip(parts[::2], map(set, names), strict=True))
    public = {name: getattr(posenc, name) for name in dir(posenc) if name[0].isupper()}
    for place, interface in INTERFACES.items():
        assert listed[place] == {
            name
            for name, each in public.items()
            if isinstance(each, type) and issubclass(each, interface)
            if each.__module__ not in (base.__name__, bias.__name__)
        }
    assert {"PoSE", "SHAPE", "Randomized"} <= listed["Changing positions"]
    assert listed["Nodes of graphs"] == {"LaplacianEncoding", "RandomWalkEncoding"}


def test_the_command_writes_the_page(run, tmp_path):
    path = tmp_path / "page.html"
    assert run("explore", "-o", path).status == 0
    assert path.read_text(encoding="utf-8") == page()


def test_a_notebook_shows_the_page_in_a_closed_frame():
    html = show(700)._repr_html_()
    assert 'height="700"' in html
    assert 'sandbox="allow-scripts allow-downloads"' in html
    assert unescape(html.split('srcdoc="')[1].rsplit('"', 1)[0]) == page()
