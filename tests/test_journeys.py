"""Five journeys from the documentation alone, in an empty folder with a home and Python of its own.

What is run stands in the pages; the tests lower a number of steps, or name a model on the disk.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tests.test_contributing import python_of

from posenc import Sinusoidal

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
KEPT = ("ATEN_CPU_CAPABILITY", "OMP_NUM_THREADS", "LD_LIBRARY_PATH")
"""Of the environment: what is about the machine and not about whoever sits there."""


def blocks(page: str, kind: str) -> list[str]:
    """The blocks of one kind that stand in a page."""
    found = BLOCK.finditer((ROOT / page).read_text())
    texts = [each["text"] for each in found if each["kind"] == kind]
    assert texts, f"{page} has no block of {kind}"
    return texts


def line(page: str, words: str) -> str:
    """The one line for a shell that has these words."""
    lines = [each for block in blocks(page, "sh") for each in block.splitlines() if words in each]
    assert len(lines) == 1, f"{page} has {len(lines)} lines with {words!r}"
    return lines[0]


def instead(text: str, old: str, new: str) -> str:
    """The text with another number in it, which must be there."""
    assert text.count(old) == 1, f"{old!r} stands there {text.count(old)} times"
    return text.replace(old, new)


def shown(cell: str) -> str:
    """A cell of a notebook as lines of a file: what its last line says is printed."""
    *before, last = ast.parse(re.sub(r"^:tags:.*\n", "", cell)).body
    lines = [ast.unparse(each) for each in before]
    said = isinstance(last, ast.Expr)
    return "\n".join([*lines, f"print({ast.unparse(last)})" if said else ast.unparse(last)])


@dataclass(frozen=True)
class Place:
    """An empty folder, in which commands run as somebody types them who has installed posenc."""

    folder: Path

    def run(self, command: str, status: int = 0) -> str:
        """What a line for a shell prints."""
        scripts = self.folder / ".venv/bin"
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment["PATH"] = f"{scripts}{os.pathsep}{os.environ['PATH']}"
        environment["HOME"] = str(self.folder.parent / "home")
        ran = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env={"LANG": "C.UTF-8", **environment},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == status, f"{ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def place(tmp_path) -> Place:
    """Its ``posenc`` is the script that pip makes of the entry point."""
    for name in ("here", "home"):
        (tmp_path / name).mkdir()
    python = python_of(tmp_path)
    (tmp_path / "here/.venv").symlink_to(tmp_path / "venv")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, function = project["scripts"]["posenc"].split(":")
    script = python.parent / "posenc"
    script.write_text(
        f"#!{python}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
    )
    script.chmod(0o755)
    return Place(tmp_path / "here")


@pytest.mark.slow("a journey: files encoded")
def test_a_file_is_encoded_and_read_back(place):
    from safetensors import safe_open

    shutil.copy(ROOT / "README.md", place.folder)
    command = line("README.md", "posenc encode").split("&&")[-1]
    assert "wrote readme.safetensors" in place.run(command)
    with safe_open(place.folder / "readme.safetensors", "pt") as file:
        told, found = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    lines = [each for each in (ROOT / "README.md").read_text().splitlines() if each.strip()]
    mask = found.pop("mask", torch.ones(found["ids"].shape, dtype=torch.bool))
    ids, positions, values = (found[name][mask] for name in ("ids", "positions", "values"))
    assert len(found["lines"]) == len(lines)
    assert int((positions == 0).sum()) == len(lines)
    words = {index: word for word, index in json.loads(told["vocabulary"]).items()}
    assert words[int(ids[0])] == "#"
    assert words[int(ids[1])] == "posenc"
    # Without its position, a word is the same everywhere.
    alone = values - Sinusoidal(64).table(positions)
    first = torch.stack([alone[ids == each][0] for each in ids.unique()])
    torch.testing.assert_close(alone, first[torch.searchsorted(ids.unique(), ids)])


@pytest.mark.slow("a journey: a small model trained")
def test_a_small_model_is_trained_and_decodes(place):
    cells = map(shown, blocks("docs/tutorials/a-small-gpt.md", "{code-cell}"))
    script = instead("\n".join(cells), "steps=400", "steps=40")
    place.write("journey.py", script + "\nprint('untrained', bits(GPT(Positional()), 64))\n")
    said = place.run("python journey.py")
    untrained = float(re.search(r"^untrained ([\d.]+)$", said, flags=re.MULTILINE)[1])
    rows = re.findall(r"^(none|sinusoidal|rotary|ALiBi) +([\d.]+)", said, flags=re.MULTILINE)
    assert len(rows) == 4
    assert all(float(bits) < 0.7 * untrained for _, bits in rows), (untrained, rows)
    assert "def mean(data):\n" in said
    assert said.count("True\n") == 2  # by the cache as at once, and padded as alone
    assert "False" not in said


@pytest.mark.slow("a journey: a loaded model extended")
def test_a_loaded_model_is_extended(place):
    page = "docs/extending-context.md"
    place.write("model.py", MODEL)
    place.run("python model.py")
    said = place.run(line(page, "--length 32768"))
    assert re.search(r"trained length +8,192", said)
    examples = "\n".join(blocks(page, "python"))
    loaded = "LlamaForCausalLM.from_pretrained('.', local_files_only=True)"
    examples = instead(examples, "LlamaForCausalLM(config)", loaded)
    place.write("journey.txt", examples + SAVED)
    place.run("python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE journey.txt")
    differ = place.run(line(page, "extended/config.json"))
    assert "yarn" in differ
    said = json.loads((place.folder / "extended/config.json").read_text())
    assert said["max_position_embeddings"] == 32768
    assert said["rope_parameters"]["original_max_position_embeddings"] == 8192


MODEL = """\
from transformers import LlamaConfig, LlamaForCausalLM

LlamaForCausalLM(
    LlamaConfig(vocab_size=99, hidden_size=64, intermediate_size=64, num_hidden_layers=1,
                num_attention_heads=2, max_position_embeddings=8192, rope_theta=500000.0,
                initializer_range=0.2)
).save_pretrained(".")
"""
SAVED = """
>>> model.save_pretrained("extended")
>>> rotary_from_config("extended/config.json").frequencies == after.frequencies
True
>>> load = LlamaForCausalLM.from_pretrained
>>> alone, before = (load(name, local_files_only=True).eval() for name in ("extended", "."))
>>> ids, far = torch.arange(40)[None], torch.arange(9000, 9040)[None]
>>> with torch.no_grad():
...     three = [each(ids, position_ids=far).logits for each in (model, alone, before)]
>>> ours, theirs, plain = three
>>> torch.allclose(ours, theirs, atol=0.05)  # angles in float32 move logits by thousandths
True
>>> float((ours - plain).abs().max()) > 0.5  # what the extension is for
True
"""
"""The page ends before the model is saved: transformers alone reads the same function.

Without the extension, logits are 2 apart: were it not applied, or not read back, both would say so.
"""


@pytest.mark.slow("a journey: a peer's module checked in CI")
@pytest.mark.parametrize(("angles", "fault"), [("half", None), ("neighbors", "pairing-mixed")])
def test_a_peers_module_is_checked(place, angles, fault):
    peer = PEER if angles == "half" else instead(PEER, "torch.cat((omega, omega))", NEIGHBORS)
    (loading,) = (each for each in blocks(PAGE, "python") if "pytest_plugins" in each)
    (test,) = blocks(PAGE, "py")
    place.write("src/model.py", peer)
    place.write("conftest.py", loading)
    place.write("test_positions.py", f"{IMPORTS}\n\n{test}")
    said = place.run("python -m pytest -q -p no:cacheprovider", status=1 if fault else 0)
    assert ("1 failed" if fault else "1 passed") in said
    assert fault is None or fault in said
    workflow = "".join(blocks(PAGE, "yaml"))
    (command,) = re.findall(r"run: (posenc check .*)$", workflow, flags=re.MULTILINE)
    place.run(command, status=1 if fault else 0)
    (run,) = json.loads((place.folder / "positions.sarif").read_text())["runs"]
    wrong = [each["ruleId"] for each in run["results"] if each["level"] == "error"]
    assert wrong == ([fault] if fault else [])


PAGE = "docs/checking.md"
IMPORTS = "import pytest\nfrom src.model import RotaryEmbedding as MyRotary"
NEIGHBORS = "omega.repeat_interleave(2)"
"""Angles of neighbors, where halves are turned."""
PEER = '''\
import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__()
        self.frequencies = [base ** (-i / dim) for i in range(0, dim, 2)]

    def forward(self, q, k, position_ids):
        """q, k: [batch, heads, seq, dim]; position_ids: [batch, seq]"""
        omega = torch.tensor(self.frequencies, dtype=torch.float64)
        angle = position_ids[:, None, :, None] * torch.cat((omega, omega))
        cos, sin = angle.cos(), angle.sin()
        return tuple((x * cos + half(x) * sin).to(x.dtype) for x in (q, k))


def half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)
'''


@pytest.mark.slow("a journey: a lesson taught from the page")
def test_a_lesson_is_taught_from_the_page(place, browser):
    place.run(line("docs/explorer.md", "-o page.html"))
    told = (ROOT / "docs/explorer.md").read_text()
    titles = re.findall(r"^\| (1[0-5] [^|]+) \|", told, flags=re.MULTILINE)
    assert titles[:2] == ["10 Rotary, slowly", "11 Long contexts"]
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page, asked, complaints = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    address = (place.folder / "page.html").as_uri()
    page.goto(f"{address}#position=1")
    settled = "html[data-settled=true]"
    page.wait_for_selector(settled, state="attached", timeout=60_000)
    headings = [" ".join(each.split()) for each in page.locator("main h2").all_text_contents()]
    assert [each for each in titles if each not in headings] == []
    for section in ("slowly", "long"):  # drawn when it comes into sight
        page.locator(f"#{section}").scroll_into_view_if_needed()
        page.wait_for_selector(settled, state="attached", timeout=60_000)
        assert page.locator(f"#{section} canvas").count()
    page.fill("#exercise-1", "0.84")  # the sine of one radian
    page.keyboard.press("Enter")
    assert page.locator("#exercise-1-said").inner_text() == "Right: 0.8415."
    assert page.locator('[data-live="solved"]').inner_text() == "1 of 10 solved."
    assert [each for each in asked if not each.startswith(address)] == []
    assert complaints == []
    context.close()
