"""The page as a file: small, whole, and closed to everything foreign."""

import base64
import hashlib
import re

import pytest
from tests.explorer.conftest import SECTIONS

import posenc
from posenc.explorer import page
from posenc.explorer.bundling import policy


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_it_is_small():
    assert len(page().encode()) <= 400_000


def test_it_has_its_sections_and_the_version():
    assert re.findall(r'<section id="([^"]+)"', page()) == SECTIONS
    assert f'name="version" content="{posenc.__version__}"' in page()
    assert "{{" not in re.sub(r"<script.*?</script>", "", page(), flags=re.S)
    assert "<!-- include" not in page()


def test_the_policy_admits_its_own_script_and_style_and_nothing_else():
    [script] = re.findall(r"<script[^>]*>(.*?)</script>", page(), flags=re.S)
    [style] = re.findall(r"<style>(.*?)</style>", page(), flags=re.S)
    said = dict(part.strip().split(" ", 1) for part in policy().split(";"))
    assert said["default-src"] == "'none'"
    assert said["script-src"] == f"'sha256-{digest(script)}'"
    assert said["style-src"] == f"'sha256-{digest(style)}'"
    assert said["img-src"] == "data: blob:"
    assert set(said) == {
        *("default-src", "script-src", "style-src", "img-src", "base-uri", "form-action")
    }


def test_it_names_no_other_place():
    # Names of XML languages look like addresses, and are none.
    addresses = set(re.findall(r"https?://[^\s\"'`<)]+", page()))
    assert addresses <= {"http://www.w3.org/1998/Math/MathML", "http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)=\"(?!#|data:|\$)", page())


def test_sources_stay_short():
    from importlib.resources import files

    root = files("posenc.explorer").joinpath("page")
    long, count = {}, 0
    for folder in (root, *(each for each in root.iterdir() if each.is_dir())):
        for item in folder.iterdir():
            if item.is_file():
                count += 1
                lines = item.read_text(encoding="utf-8").splitlines()
                if len(lines) > 300:
                    long[item.name] = len(lines)
    assert count > 50
    assert not long


@pytest.mark.parametrize("end", ["</script", "</style"])
def test_its_text_cannot_end_its_own_element(end):
    body = re.sub(r"</(script|style)>\n", "", page(), flags=re.I)
    assert end not in body.lower()
