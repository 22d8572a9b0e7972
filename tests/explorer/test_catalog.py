"""The list at the end of the page: every public encoding, once, in its place."""

import re
from html import unescape

import posenc
from posenc.encodings import base, bias
from posenc.explorer import page
from posenc.explorer.catalog import catalog

INTERFACES = {
    "Added to tokens": base.TokenEncoding,
    "Turning queries and keys": base.QueryKeyEncoding,
    "Changing scores": base.ScoreEncoding,
}


def listed() -> dict[str, set[str]]:
    parts = re.split(r"<h3>(.*?)</h3>", catalog())[1:]
    names = (re.findall(r"<dt>(.*?)</dt>", text) for text in parts[1::2])
    return {
        said: {name for each in found for name in each.split(", ")}
        for said, found in zip(parts[::2], names, strict=True)
    }


def test_every_public_encoding_stands_in_its_place():
    public = {name: getattr(posenc, name) for name in dir(posenc) if name[0].isupper()}
    classes = {name: each for name, each in public.items() if isinstance(each, type)}
    for place, interface in INTERFACES.items():
        own = {
            name
            for name, each in classes.items()
            if issubclass(each, interface) and each.__module__ not in (base.__name__, bias.__name__)
        }
        assert listed()[place] == own, place
    assert {"PoSE", "SHAPE", "Randomized"} <= listed()["Changing positions"]
    assert listed()["Nodes of graphs"] == {"LaplacianEncoding", "RandomWalkEncoding"}


def test_each_is_told_in_a_sentence_and_the_page_has_the_list():
    told = [unescape(each) for each in re.findall(r"<dd>(.*?)</dd>", catalog())]
    assert all(each.endswith(".") and 20 < len(each) < 120 for each in told)
    assert catalog() in page()
