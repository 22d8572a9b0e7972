"""American spelling, and the terms of the field in the names that we give."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
READ = {".py", ".pyi", ".c", ".h", ".js", ".css", ".html", ".md", ".toml", ".txt"}

WHOLE = (
    *("colour", "neighbour", "behaviour", "favour", "honour", "flavour", "labour", "centre"),
    *(r"metres?\b", "fibre", "catalogue", "licence", "defence", "grey", "artefact", "judgement"),
    *(r"spelt\b", r"learnt\b", "whilst", r"towards\b", r"programme\b", "analyse", "cancelled"),
    *("labell(?!edby)", "modelled", "modelling", "travelled", "signalled", "totalled"),
    r"fulfil\b",
)
VERBS = (
    *("normal", "random", "organ", "recogn", "general", "initial", "optim", "serial", "summar"),
    *("visual", "quant", "vector", "parallel", "token", "minim", "maxim", "custom", "special"),
    *("material", "synchron", "factor", "discret", "symmetr", "equal", "standard", "util"),
    *("penal", "character", "emphas", "real", "local", "final", "formal", "linear", "polar"),
    "regular",
)
BRITISH = re.compile(
    "|".join(WHOLE) + f"|(?:{'|'.join(VERBS)})is(?:e|ed|es|er|ers|ing|ation|ations)(?:\\b|_)", re.I
)
NAMES = {
    "route": "backend",
    "wave": "sin and cos",
    "util": "what it does",
    "helper": "what it does",
    "manager": "what it does",
    "misc": "what it is",
    "get": "a noun",
    "compute": "a noun",
}
GIVEN = re.compile(r"^\s*(?:async )?(?:def|class) (?!test_)(\w+)|^(\w+)(?:: [^=]+)? = ", re.M)
OTHERS = {"get_seq_length"}  # names that a base class of somebody else asks for


def faults(path: Path, text: str) -> list[str]:
    """British words in a text, and words that say nothing in the names it gives."""
    found = [f"{each[0]} is British" for each in BRITISH.finditer(text)]
    given = [path.stem]
    if path.suffix == ".py":
        given += [name for pair in GIVEN.findall(text) for name in pair if name]
    for name in set(given) - OTHERS:
        words = re.findall(r"[A-Za-z][a-z]*|[A-Z]+(?![a-z])", name)
        for place, word in enumerate(words):
            word = word.lower().removesuffix("s")
            if word in NAMES and (word not in ("get", "compute") or (place == 0 and words[1:])):
                found.append(f"{name}: say {NAMES[word]}")
    return found


def test_no_forbidden_word_stands_in_the_tree():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("there is no git here")
    paths = [ROOT / name for name in listed.stdout.splitlines() if Path(name).suffix in READ]
    found = {
        str(path.relative_to(ROOT)): said
        for path in paths
        if path.is_file() and path != Path(__file__) and (said := faults(path, path.read_text()))
    }
    assert len(paths) > 300
    assert found == {}


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a.py", "def get_table(): ...\nclass CacheManager: ...\nbest_route = 1", 3),
        ("a.py", "config.get_text(compute_mode=1)\ndef test_a_wave_has_a_helper(): ...", 0),
        ("utils.py", "", 1),
        ("a.md", "The behaviour is normalised.", 2),
        ("a.md", "A precise, otherwise wise exercise at the center of a realistic promise.", 0),
    ],
)
def test_what_is_found(name, text, count):
    assert len(faults(Path(name), text)) == count
