"""The page in Chromium, and its mathematics in node and in Chromium."""

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import refused as refused
from tests.cli.conftest import run as run

from posenc.explorer import page as explorer_page
from posenc.explorer.bundling import EXPORT, joined
from posenc.explorer.serving import server

SOURCES = files("posenc.explorer").joinpath("page")
SECTIONS = [
    *("why", "matrix", "curves", "clocks", "similarity"),
    *("shift", "sentence-section", "relatives", "encoder"),
    *("slowly", "long", "biases", "decoder", "grid", "exercises"),
]
FIGURES = explorer_page().count('<div data-figure="')


@pytest.fixture(scope="session")
def address(tmp_path_factory) -> str:
    """The page as a file, as ``posenc explore -o`` writes it."""
    path: Path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(explorer_page(), encoding="utf-8")
    return path.as_uri()


@dataclass
class Opened:
    """A page, and what it complained about or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def settle(self) -> None:
        """Waits until everything has been drawn."""
        self.page.wait_for_selector("html[data-settled=true]", state="attached", timeout=20_000)

    def text(self, name: str) -> str:
        """What a live line says, once it has settled; a formula as it is spoken."""
        self.settle()
        line = self.page.locator(f'[data-live="{name}"]')
        spoken = line.locator(".spoken")
        return (spoken if spoken.count() else line).text_content()

    def to(self, section: str) -> None:
        """Brings a section into sight."""
        self.page.evaluate(
            "id => document.getElementById(id).scrollIntoView({ behavior: 'instant' })", section
        )
        self.settle()


@pytest.fixture
def opened(browser, address) -> Iterator[Callable[..., Opened]]:
    """Opens the page from disk, with the state of a link; options are those of a context."""
    contexts = []

    def open_(state: str = "", *, before: Callable | None = None, **options: Any) -> Opened:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("request", lambda request: found.requests.append(request.url))
        if before:
            before(found.page)
        found.page.goto(f"{address}#{state}")
        found.settle()
        return found

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture
def port() -> Iterator[int]:
    with server() as here:
        thread = threading.Thread(target=here.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield here.server_address[1]
        here.shutdown()
        thread.join()


def pure_modules() -> str:
    """The modules that know no page as one script; those of ``math`` go by their name alone."""
    imports, objects = [], []
    for folder in ("math", "state", "prose"):
        for item in SOURCES.joinpath(folder).iterdir():
            own = item.name.removesuffix(".js")
            own = own if folder == "math" else f"{folder}_{own}"
            exported = EXPORT.findall(item.read_text(encoding="utf-8"))
            listed = ", ".join(f"{each} as {own}_{each}" for each in exported)
            imports.append(f'import {{ {listed} }} from "./{folder}/{item.name}";\n')
            fields = ", ".join(f"{each}: {own}_{each}" for each in exported)
            objects.append(f"globalThis.{own} = {{ {fields} }};\n")

    def read(path: str) -> str:
        if path == "golden.js":
            return "".join(imports + objects)
        return SOURCES.joinpath(path).read_text(encoding="utf-8")

    return joined("golden.js", read)


PLAIN = "(_, v) => ArrayBuffer.isView(v) ? Array.from(v) : v === Infinity ? 'Infinity' : v"


@pytest.fixture(scope="session")
def javascript(browser) -> Callable[[Sequence[str]], list[Any]]:
    """Evaluates expressions over the page's modules, as ``sincos.frequency(100, …)``."""
    blank = browser.new_page()
    blank.add_script_tag(content=pure_modules())

    def evaluated(expressions: Sequence[str]) -> list[Any]:
        return json.loads(blank.evaluate(f"JSON.stringify([{','.join(expressions)}], {PLAIN})"))

    return evaluated


@pytest.fixture
def said(javascript) -> Callable[..., Iterator[tuple[dict, str]]]:
    """What a function of ``page/prose`` says in each of some states, settled as the page does."""

    def said(function: str, states: list[dict]) -> Iterator[tuple[dict, str]]:
        code = (
            "((states) => states.map((asked) => {"
            " const state = state_limits.settled({ ...state_defaults.DEFAULTS, ...asked });"
            f" return [state, {function}(state)]; }}))({json.dumps(states)})"
        )
        for state, words in javascript([code])[0]:
            for bad in ("NaN", "undefined", "Infinity", "null", "-0", " 1 positions", " 1 pairs"):
                assert bad not in str(words), (state, words)
            yield state, words

    return said


def product(**fields: Sequence) -> list[dict]:
    """Every state that takes one value of each field."""
    return [dict(zip(fields, each, strict=True)) for each in itertools.product(*fields.values())]


def numbers(text: str) -> list[float]:
    """The numbers in a sentence, as the page writes them."""
    plain = text.replace("−", "-").replace("\u2009", "").replace("\u00a0", " ")
    return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", plain)]
