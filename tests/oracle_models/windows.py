"""Which keys a query of each layer sees in models that run, held against what is read of them.

``python -m tests.oracle_models.windows`` measures every type in many states of the fields that may
change what is seen, holds its reading against each, and writes the list of the package. Results
are kept line by line, so that a run that was cut off goes on where it stopped.
"""

import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from tests.oracle_models import building
from tests.oracle_models.comparing import layer_of
from tests.oracle_models.forked import apart
from tests.oracle_models.probing import Attended, watched
from transformers import CONFIG_MAPPING

from posenc.interop import windows
from posenc.interop.huggingface import positional_setup
from posenc.interop.families import names
from posenc.interop.setup import Part
from posenc.interop.windows import EVERYWHERE, NOWHERE, SOME, WINDOWS

PATH = Path(__file__).parents[2] / "src" / "posenc" / "interop" / "windows.txt"
KEPT = Path(".oracle_windows.jsonl")
SECONDS = 120
LENGTH, SIZE, MIDDLE = 13, 3, 8
"""Tokens, a window, and the query that is looked at: with more keys before and after it."""

OTHERS = {"local_attention": 6, "attention_chunk_size": 4, "window_size": 3}
"""Fields beside ``WINDOWS`` that limit what is seen, and what they are given."""

OWN = {
    "gemma3n_text": {"intermediate_size": [32] * 8, "activation_sparsity_pattern": [0.0] * 8},
    "gpt_neo": {"num_layers": 6, "attention_types": [[["global", "local"], 3]]},
    "t5gemma2_decoder": {"dropout_rate": 0.0},
    "t5gemma2_text": {"dropout_rate": 0.0},
}
"""What some types cannot be built without, beside what others cannot."""

FULL, SLIDING = "full_attention", "sliding_attention"

Seen = dict[int, tuple[int, int]]
"""By layer that attends: the keys that the query sees up to its own, and after it."""


@dataclass
class Held:
    """What came of one type.

    Attributes:
        model_type: The type.
        names: What files call it: Evolla's is registered under another name than its files have.
        rule: Which layers slide, then the fields that are looked at; empty where nothing ran.
        counts: How many states agree, differ, are refused, or did not run.
        differing: Of the states that differ: the fields, what was said, and what was seen.
        why: Of what did not run, the first reason.
    """

    model_type: str
    names: list[str] = field(default_factory=list)
    rule: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def agrees(self) -> bool:
        """Whether something ran, and all that ran is what was said."""
        return self.counts.get("agrees", 0) > 0 and not self.differing


def held(model_type: str) -> Held:
    """Runs a type in all its states, then reads them as the package would with what was seen."""
    found = Held(model_type)
    try:
        file = base(model_type)
        part = _part(_filled(file))
        if part is None:
            return found
        seen_by_default = seen(file)
    except Exception as error:
        found.why = f"{type(error).__name__}: {error}".split("\n")[0][:160]
        return found
    ran: list[tuple[dict[str, Any], Seen]] = [({}, seen_by_default)]
    counts: Counter[str] = Counter()
    for fields in states(model_type, part):
        try:
            ran.append((fields, seen({**file, **fields})))
        except Exception as error:
            found.why = found.why or f"{type(error).__name__}: {error}".split("\n")[0][:160]
            counts["not run"] += 1
    found.rule = rule(ran)
    found.names = sorted({model_type, str(_filled(file)["model_type"])})
    windows.measured().update(dict.fromkeys(found.names, tuple(found.rule)))  # type: ignore
    for fields, layers in ran:
        outcome, why = compared({**file, **fields}, layers)
        counts[outcome] += 1
        if outcome == "differs":
            found.differing.append(f"{fields}: {why}")
        if outcome == "refused":
            found.refused.append(f"{fields}: {why}")
    found.counts = dict(counts)
    return found


def states(model_type: str, part: Part) -> Iterator[dict[str, Any]]:
    """The fields that are laid over those of a tiny model, one state after another."""
    depth = len(part.layers)
    mixed = [(FULL, SLIDING)[index % 2] for index in range(depth)]
    rotates = any(x.positional and len(x.positional.queries_keys) for x in part.layers)
    switches = ({}, {"use_sliding_window": True}, {"use_sliding_window": False})
    own = [name for name in WINDOWS if _has(model_type, name)]
    for name in own:
        for types in ({}, {"layer_types": mixed}, {"layer_types": [FULL] * depth}):
            for switch in switches:
                yield {name: SIZE, **types, **switch}
        for switch in switches[:2]:
            yield {name: SIZE, **switch, "max_window_layers": 2}
        yield {name: None}
        yield {name: None, "layer_types": mixed}
        yield {name: None, "layer_types": mixed, "use_sliding_window": True}
        if _has(model_type, "use_bidirectional_attention"):
            for flag in (True, "all"):  # classes that halve a window lose an odd one's half
                yield {name: SIZE + 1, "use_bidirectional_attention": flag}
    for name in [name for name in WINDOWS if name not in own and rotates]:
        yield {name: SIZE, "use_sliding_window": True}
        yield {name: SIZE, "use_sliding_window": True, "layer_types": mixed}
        yield {name: SIZE, "layer_types": mixed}
    for name, size in OTHERS.items():
        if _has(model_type, name):
            yield {name: size}
            yield {name: size, "layer_types": mixed}
    if own:
        yield {name: SIZE + 2 * index for index, name in enumerate(WINDOWS)}
    if rotates:
        yield {"layer_types": mixed}


def _has(model_type: str, name: str) -> bool:
    kind = CONFIG_MAPPING[model_type]
    return name in inspect.signature(kind).parameters or name in vars(kind)


def rule(ran: list[tuple[dict[str, Any], Seen]]) -> list[str]:
    """Which layers slide, and by which fields, of what was seen in each state.

    A field that tells how many keys are seen beside the query's own is followed by ``+1``. The
    first is the one that counts where there are several.
    """
    fields, everywhere = [], []
    for name in WINDOWS:
        with_it = [each for each in ran if _slides_by(name, *each)]
        if not with_it:
            continue
        least = min(back for _, layers in with_it for back, _ in layers.values() if back > 0)
        fields.append(f"{name}+1" if least > SIZE else name)
        full = [layers for given, layers in with_it if FULL in given.get("layer_types", ())]
        everywhere += [back <= SIZE + 1 for layers in full for back, _ in layers.values()]
    if not fields:
        return [NOWHERE]
    for given, layers in ran:
        if len(fields) > 1 and all(name in given for name in WINDOWS):
            least = min(back for back, _ in layers.values() if back > 0)
            fields.sort(key=lambda each: _keys(each, given) != least)
    return [EVERYWHERE if everywhere and all(everywhere) else SOME, *fields]


def _keys(field: str, given: dict[str, Any]) -> int:
    """How many keys are seen by one of the fields alone."""
    return given[field.removesuffix("+1")] + field.endswith("+1")


def _slides_by(name: str, given: dict[str, Any], layers: Seen) -> bool:
    """Whether a field alone makes some layer slide, in one state."""
    alone = given.get(name) == SIZE and sum(other in given for other in WINDOWS) == 1
    return alone and any(0 < back <= SIZE + 1 for back, _ in layers.values())


def compared(file: dict[str, Any], layers: Seen) -> tuple[str, str]:
    """ "agrees", "differs", "refused" or "in words", and why.

    The file is read as it stands, and as its class fills it in.
    """
    refusals, agrees = [], False
    for given in (file, _filled(file)):
        try:
            part = _part(given)
        except ValueError as error:
            refusals.append(str(error)[:160])
            continue
        if part is None:
            return "in words", ""
        if part.model_type in windows.IN_WORDS:
            return "in words", ""
        said = {index: told(part, index) for index in layers if index < len(part.layers)}
        said = {i: (before, min(after, layers[i][1])) for i, (before, after) in said.items()}
        if said != layers:  # a causal model sees nothing after, which no part says
            return "differs", f"said {said}, saw {layers}"
        agrees = True
    return ("agrees", "") if agrees else ("refused", refusals[0])


def base(model_type: str) -> dict[str, Any]:
    """The file of a tiny model, without types of layers where its class lays them out."""
    own = {**building.OVERRIDES.get(model_type, {}), **OWN.get(model_type, {})}
    plain = building.shrunk(CONFIG_MAPPING[model_type](**own))
    if "layer_types" not in own:
        plain.pop("layer_types", None)
    return {**plain, **own, "model_type": model_type}


def _filled(file: dict[str, Any]) -> dict[str, Any]:
    return CONFIG_MAPPING[file["model_type"]].from_dict(dict(file)).to_dict()


def seen(file: dict[str, Any]) -> Seen:
    """What a tiny model of a file sees.

    Raises:
        ValueError: No scores of queries and keys were seen.
    """
    model = building.built(CONFIG_MAPPING[file["model_type"]].from_dict(dict(file)))
    taken = inspect.signature(model.forward).parameters
    ids = torch.full((1, LENGTH), 5)
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    if "input_ids" not in taken and "inputs_embeds" in taken:
        given["inputs_embeds"] = torch.randn(1, LENGTH, model.config.hidden_size)
    with watched(model) as record:
        model(**{name: value for name, value in given.items() if name in taken})
    found: Seen = {}
    for each in record.attended:
        index, reach = layer_of(each.path), _reach(each)
        if index is not None and reach is not None and "indexer" not in each.path:
            found.setdefault(index, reach)
    if not found:
        raise ValueError("no scores of queries and keys were seen")
    return found


def _reach(each: Attended) -> tuple[int, int] | None:
    """Of scores of queries and keys, beside which a sink may stand; -1 where heads differ."""
    rows, columns = each.scores.shape[-2:]
    if each.scores.ndim < 3 or rows != LENGTH or columns not in (LENGTH, LENGTH + 1):
        return None
    heads = each.scores.reshape(-1, rows, columns)[:, MIDDLE, :LENGTH] > -1e4
    before = set(heads[:, : MIDDLE + 1].sum(-1).tolist())
    after = set(heads[:, MIDDLE + 1 :].sum(-1).tolist())
    return (before.pop(), after.pop()) if len(before) == len(after) == 1 else (-1, -1)


SIDES = re.compile(r"sliding layers see keys up to (\d+) positions to either side")
LAST = re.compile(r"sliding layers see the last (\d+) keys")


def told(part: Part, index: int) -> tuple[int, int]:
    """The keys up to its own, and after it, that the query is said to see."""
    layer = part.layers[index]
    before, after = [MIDDLE + 1], LENGTH - 1 - MIDDLE
    if layer.window is not None:
        before.append(layer.window)
        after = min(after, layer.window - 1)
    if layer.chunk is not None:
        before.append(MIDDLE % layer.chunk + 1)
    for note in part.notes if layer.layer_type == SLIDING else ():
        if found := LAST.search(note):
            before.append(int(found[1]))
        if found := SIDES.search(note):
            before.append(int(found[1]) + 1)
            after = min(after, int(found[1]))
    return min(before), after


def _part(file: dict[str, Any]) -> Part | None:
    """The part of the type itself, if it is told in more than words."""
    own = [part for part in positional_setup(file) if part.model_type == file["model_type"]]
    own = [part for part in own if any(layer.positional for layer in part.layers)]
    return own[0] if own else None


def row_of(model_type: str) -> Held:
    """What came of one type, from a process of its own."""

    def row() -> dict[str, Any]:
        try:
            return asdict(held(model_type))
        except BaseException as error:
            return asdict(Held(model_type, differing=[f"{type(error).__name__}: {error}"[:300]]))

    found = apart(row, SECONDS)
    return Held(model_type, why="it took long") if found is None else Held(**found)


def main(chosen: list[str]) -> int:
    """Runs the types that are named, or all that were not run, and writes the list."""
    rows = {}
    if KEPT.exists():
        rows = {row["model_type"]: Held(**row) for row in map(json.loads, KEPT.open())}
    with KEPT.open("a") as out:
        for model_type in chosen or [name for name in names() if name not in rows]:
            rows[model_type] = row = row_of(model_type)
            out.write(json.dumps(asdict(row)) + "\n")
            out.flush()
            if row.differing or chosen:
                print(row.model_type, row.rule, row.counts, row.why, *row.differing, sep="\n  ")
    good = [rows[name] for name in names() if name in rows and rows[name].agrees]
    if not chosen:
        lines = [" ".join([name, *row.rule]) for row in good for name in row.names]
        PATH.write_text("\n".join(dict.fromkeys(lines)) + "\n", encoding="utf-8")
    print(
        f"{len(good)} types are read as they run, in {sum(r.counts['agrees'] for r in good)} states"
    )
    return any(row.differing for row in rows.values())


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(sys.argv[1:]))
