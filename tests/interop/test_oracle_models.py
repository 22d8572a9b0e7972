"""A sample of all model types held against their readings; all of them: `python -m
tests.oracle_models`."""

import random
import re
import subprocess
import time

import pytest
import torch
from tests.oracle_models import building
from tests.oracle_models.oracle import verdict
from transformers import CONFIG_MAPPING

from posenc import Learned, Positional
from posenc.interop import schemes
from posenc.interop.huggingface import positional_setup
from posenc.interop.model_types import names
from posenc.interop.verified import VERIFIED

SECONDS = 8.0
ALWAYS = ("llama", "deepseek_v32", "qwen2_vl_text", "bloom", "t5", "roberta")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout


def _changed() -> set[str]:
    """Types that the last commit speaks of, where it changes how models are read."""
    lines = _git("diff", "-U0", "HEAD~1", "HEAD", "--", "src/posenc/interop").splitlines()
    words = re.findall(r"[\w-]+", " ".join(x for x in lines if x[:1] in "+-" and len(x) < 200))
    return set(words) & set(names())


@pytest.mark.parametrize("model_type", ALWAYS)
def test_one_of_each_kind_is_read_as_its_model_does(model_type):
    found = verdict(model_type)
    assert found.status == "agrees", found
    assert found.checks > 0


@pytest.mark.slow("tiny models of a dozen types, built and run")
def test_a_random_sample_is_read_as_its_models_do():
    """Others with every commit, and first what it changes; none may differ from what it was."""
    verified = [name for name in names() if name in VERIFIED]
    random.Random(_git("rev-parse", "HEAD")).shuffle(verified)
    changed = _changed()
    verified.sort(key=lambda name: name not in changed)
    until, seen = time.monotonic() + SECONDS, 0
    with torch.random.fork_rng():
        for model_type in verified:
            if time.monotonic() > until:
                break
            found = verdict(model_type)
            assert found.status == "agrees", found
            seen += 1
    assert seen > 0


@pytest.mark.slow("models of all types with learned tables, without weights")
def test_learned_tables_have_the_shape_that_their_class_has_by_default():
    """Tiny models may be as wide here as there: RemBERT's tokens are narrower than its layers."""
    both = {kind for kind, rows in schemes.BOTH.items() if schemes.LearnedRows in map(type, rows)}
    seen = 0
    for model_type in sorted({*schemes.LEARNED, *both}):
        config = CONFIG_MAPPING[model_type]()
        try:
            parts = positional_setup(config).parts
        except ValueError:  # a class that has no pad_token_id by default
            continue
        ours = {
            tuple(each.weight.shape)
            for part in parts
            for each in (part.layers[0].positional or Positional()).tokens
            if isinstance(each, Learned)
        }
        theirs = {
            tuple(each.shape)
            for model in building.all_built(config)
            for name, each in model.named_parameters()
            if re.search("pos|wpe", name)
        }
        assert not theirs or ours <= theirs, (model_type, ours, theirs)
        seen += bool(ours and theirs)
    assert seen > 60


def test_it_sees_a_wrong_reading(monkeypatch):
    """A wrong base, a wrong pairing and a wrong scale are told."""
    from posenc.interop import rope_models

    monkeypatch.setattr(rope_models, "INTERLEAVED", rope_models.INTERLEAVED | {"llama"})
    assert "scores differ" in verdict("llama").why
    monkeypatch.undo()
    monkeypatch.setattr(rope_models, "UNSCALED", frozenset({"llama"}))
    assert "softmax scale" in verdict("llama").why
    monkeypatch.undo()
    assert verdict("llama", rope_parameters={"rope_type": "linear", "factor": 3.0,
                                             "rope_theta": 5e5}).status == "agrees"  # fmt: skip
