"""Grids: what they resolve to, and which field a mistake names."""

import pytest
from tests.lab.conftest import TINY

from posenc.lab import GridError, grid_from, planned, shipped
from posenc.lab.encodings import drawn
from posenc.lab.planning import seconds_left
from posenc.lab.working import make

MINE = '''
import torch
from shared_slopes import SLOPE
from posenc import RelativeBias

class MyBias(RelativeBias):
    """One slope for all heads."""
    is_causal = False

    def __init__(self, heads, slope=SLOPE):
        super().__init__()
        self.heads, self.slope = heads, slope

    def profile(self, distance, *, dtype=torch.float32):
        return (-self.slope * distance.abs()).to(dtype).expand(self.heads, *distance.shape)
'''
ROTARY = '[[encodings]]\nname = "Rotary"\nuse = "Rotary({head_dim})"\n'
LINEAR = """
[[extensions]]
name = "Linear"
of = "Rotary"
use = "Rotary(Linear(Geometric({head_dim}), factor={factor}))"
factors = [2, 4]
steps = [0, 3]
"""
RATES = TINY.replace("steps = 4", "learning_rates = [1e-3, 1e-2]\ntuning_steps = 2\nsteps = 4")


@pytest.mark.parametrize(
    ("old", "new"),
    [("steps = 4", "steps = 4\nclip = 1\nlearning_rates = 2e-3"), ("seeds = 2", "seeds = [0, 1]")],
)
def test_words_and_ways_of_writing_change_no_run(tiny, store, old, new):
    ids = {run.id for run in planned(tiny(), store).runs}
    assert {run.id for run in planned(tiny(text=TINY.replace(old, new)), store).runs} == ids


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("seeds = 2", "seeds = 2 3", "line 3"),
        ("seeds = 2", "seeds = [1, 1]", "seeds"),
        ("steps = 4", "stpes = 4", "training: .*stpes"),
        ("heads = 2", "heads = 3", r"multiple of heads, 3\..*models\[0\]"),
        ('task = "k_front"', 'task = "k_frnt"', r"tasks\[0\]: .*k_frnt"),
        ("k = 2", "kk = 2", r"tasks\[0\]: .*'kk'"),
        ("ALiBi({heads})", "ALibi({heads})", "encodings 'ALiBi' .*ALibi"),
        ("ALiBi({heads})", "ALiBi({head})", "{head} is none of"),
        ("ALiBi({heads})", "Learned({dim}, {trained})", "encodings 'ALiBi' on k_front"),
        ("ALiBi({heads})", "none.py:My(1)", "none.py"),
        ('name = "ALiBi"', 'name = "NoPE"', "NoPE twice"),
        ('use = "ALiBi({heads})"', "nope_layers = [2]", "nope_layers"),
    ],
)
def test_a_mistake_names_its_field(tiny, old, new, field):
    with pytest.raises(GridError, match=rf"tiny\.toml: .*{field}"):
        tiny(text=TINY.replace(old, new))


@pytest.mark.slow("builds and calls every encoding of the shipped grids at the longest lengths")
@pytest.mark.parametrize("name", shipped())
def test_every_encoding_of_the_shipped_grids_fits_its_tasks(name):
    grid_from(name)


def test_a_class_of_ones_own_is_an_encoding(tiny, tmp_path, store):
    """Its file may import one beside it."""
    (tmp_path / "shared_slopes.py").write_text("SLOPE = 0.5\n")
    (tmp_path / "mine.py").write_text(MINE)
    grid = tiny('[[encodings]]\nname = "mine"\nuse = "mine.py:MyBias({heads}, slope=0.25)"')
    run = planned(grid, store).runs[-1]
    assert run.configuration.use == ("mine.py:MyBias(2, slope=0.25)",)
    (tmp_path / "mine.py").write_text(MINE.replace("One slope", "A single slope"))
    assert planned(grid, store).runs[-1].id == run.id  # words alone change nothing
    (tmp_path / "mine.py").write_text(MINE.replace("-self.slope *", "-2 * self.slope *"))
    assert planned(grid, store).runs[-1].id != run.id


def test_encodings_are_composed():
    def made(*use: str, bare: tuple[int, ...] = ()):
        return drawn(use, depth=3, nope_layers=bare, seed=0)

    each = made("Rotary(4)", "ALiBi(2)", "Randomized(64)", "Sinusoidal(8)")
    assert [len(p) for p in (each.tokens, each.queries_keys, each.scores, each.positions)] == [
        1
    ] * 4
    whole = made("Positional(queries_keys=Rotary(4), scores=ALiBi(2))")
    assert len(whole.queries_keys) == len(whole.scores) == 1
    bare = made("Rotary(4)", "Sinusoidal(8)", bare=(0, 2))
    assert [len(each.queries_keys) for each in bare] == [0, 1, 0]
    assert len(bare[0].tokens) == 1  # what is added to tokens is no matter of layers
    with pytest.raises(ValueError, match="OrderedDict"):
        made("collections:OrderedDict()")


def test_the_learning_rate_is_chosen_by_the_loss_at_the_trained_length(tiny, store):
    grid = tiny(text=RATES)
    plan = planned(grid, store)
    assert (len(plan.runs), plan.waiting) == (4, 4)
    assert {run.configuration.training.steps for run in plan.runs} == {2}
    assert min(run.configuration.seed for run in plan.runs) > 1000  # never a reported one

    def chosen(of) -> set[float]:
        for run in plan.runs:
            result = make(run.configuration, store)
            result["outcome"] |= of(run.configuration.training.learning_rate)
            store.keep(run.id, result)
        made = [run for run in planned(grid, store).runs if run.kind == "reported"]
        assert len(made) == 4
        return {run.configuration.training.learning_rate for run in made}

    # What a longer row gives has no say, and what diverged is not chosen.
    assert chosen(lambda rate: {"loss": -rate, "losses": {"4": -rate, "8": rate}}) == {1e-2}
    assert chosen(lambda rate: {"loss": -rate, "diverged": rate > 2e-3}) == {1e-3}


def test_extensions_wait_for_what_they_extend(tiny, store):
    plan = planned(tiny(ROTARY + LINEAR), store)
    extended = [run for run in plan.runs if run.kind == "extended"]
    assert {run.encoding.partition(",")[0] for run in extended} == {"Linear ×2", "Linear ×4"}
    assert len(extended) == 2 * 4
    assert extended[2].configuration.options["tested"] == [4, 16]
    assert not extended[0].is_ready(store)
    base = next(r for r in plan.runs if r.id == extended[0].configuration.extension.of)
    make(base.configuration, store)
    assert extended[0].is_ready(store)
    assert make(extended[0].configuration, store)["outcome"]["scores"].keys() == {"4", "8"}


def test_the_time_left_is_that_of_runs_on_this_machine(tiny, store):
    plan = planned(tiny(), store)
    assert seconds_left(plan, store, "here", 1) is None
    result = make(plan.runs[0].configuration, store)
    result["cost"]["seconds"], result["machine"]["host"] = 2.0, "here"
    store.keep(plan.runs[0].id, result)
    assert seconds_left(plan, store, "here", 2) == 3 * 2.0 / 2
    assert seconds_left(plan, store, "elsewhere", 1) is None
    store.note_failure(plan.runs[1].id, "an error", final=True)  # nobody makes it again
    assert seconds_left(plan, store, "here", 1) == 2 * 2.0
