"""Grids: what they resolve to, and which line a mistake stands on."""

import pytest
from tests.lab.conftest import TINY

from posenc.lab import GridError, grid_from, planned, shipped
from posenc.lab.encodings import positional, version
from posenc.lab.planning import seconds_left
from posenc.lab.working import make

MINE = '''
import torch
from posenc import RelativeBias

class MyBias(RelativeBias):
    """One slope for all heads."""
    is_causal = False

    def __init__(self, heads, slope=0.5):
        super().__init__()
        self.heads, self.slope = heads, slope

    def profile(self, distance, *, dtype=torch.float32):
        return (-self.slope * distance.abs()).to(dtype).expand(self.heads, *distance.shape)
'''


def test_a_grid_is_tasks_by_encodings_by_seeds(tiny, store):
    plan = planned(tiny(), store)
    assert len(plan.runs) == plan.total == 2 * 2
    assert {run.configuration.use for run in plan.runs} == {(), ("ALiBi(2)",)}
    assert {run.configuration.seed for run in plan.runs} == {0, 1}
    assert {run.configuration.training.steps for run in plan.runs} == {4}


def test_names_do_not_make_a_run_another_one(tiny, store):
    ids = {run.id for run in planned(tiny(), store).runs}
    renamed = TINY.replace('name = "ALiBi"', 'name = "Linear biases"')
    assert {run.id for run in planned(tiny(text=renamed), store).runs} == ids


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("seeds = 2", "seeds = 2 3", 3, "this is no TOML"),
        ("seeds = 2", 'seeds = "two"', 3, "seeds holds 'two'; it must hold a whole number."),
        ("seeds = 2", "sedes = 2", 1, "seeds is missing"),
        ("seeds = 2", "seeds = [0, 1000003]", 3, "seeds holds 1000003; from 1000003 on they tune"),
        ("steps = 4", "stpes = 4", 6, "'stpes' means nothing here; expected one of"),
        ("steps = 4", "steps = 4\ntuning_seeds = 0", 7, "tuning_seeds is 0; it must be at least 1"),
        ("steps = 4", "steps = 0", 6, "steps is 0; it must be a whole number from 1 on."),
        ("heads = 2", "heads = 3", 11, "dim is 8; it must be a multiple of heads, 3."),
        ('task = "k_front"', 'task = "k_frnt"', 16, "'k_frnt' is no task; known are word_order"),
        ("trained = 4", "trained = 5", 18, "tested is [4, 8]; it must hold the trained length, 5"),
        ("k = 2", "kk = 2", 19, "k_front has no option 'kk'; it has trained, tested, k."),
        ("k = 2", "k = -1", 19, "k is -1; it must be a whole number from 1 on."),
        ("ALiBi({heads})", "ALibi({heads})", 26, "'ALibi' is no encoding; did you mean 'ALiBi'?"),
        ("ALiBi({heads})", "ALiBi({head})", 26, "{head} is none of {dim}, {heads}, {head_dim}"),
        ("ALiBi({heads})", "ALiBi(3)", 26, "built with heads=3; this encoder has heads 2"),
        ("ALiBi({heads})", "Learned({dim}, {trained})", 26, "KFront at length 8"),
        ("ALiBi({heads})", "none.py:My(1)", 26, "there is no file"),
        ('name = "ALiBi"', 'name = "NoPE"', 25, "'NoPE' is the name of two encodings"),
        ('name = "ALiBi"', 'nmae = "ALiBi"', 24, "name is missing"),
        ('use = "ALiBi({heads})"', "nope_layers = [2]", 26, "nope_layers holds 2; the model has"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(tiny, tmp_path, old, new, line, said):
    assert TINY.count(old) == 1 or old == 'name = "ALiBi"'
    with pytest.raises(GridError) as error:
        tiny(text=TINY.replace(old, new))
    told = str(error.value)
    assert told.startswith(f"{tmp_path / 'tiny.toml'}, line {line}: "), told
    assert said in told


def test_a_grid_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(GridError, match=r"no shipped grid of this name; shipped are .*quick"):
        grid_from("quik")


@pytest.mark.parametrize("name", shipped())
def test_shipped_grids_are_whole(name, store):
    plan = planned(grid_from(name, check=False), store)
    assert plan.total > 10


@pytest.mark.slow("builds and calls every encoding of the shipped grids at the longest lengths")
@pytest.mark.parametrize("name", shipped())
def test_every_encoding_of_the_shipped_grids_fits_its_tasks(name):
    grid_from(name)


def test_a_class_of_ones_own_is_an_encoding(tiny, tmp_path, store):
    (tmp_path / "mine.py").write_text(MINE)
    grid = tiny('[[encodings]]\nname = "mine"\nuse = "mine.py:MyBias({heads}, slope=0.25)"')
    run = planned(grid, store).runs[-1]
    assert run.configuration.use == ("mine.py:MyBias(2, slope=0.25)",)
    (tmp_path / "mine.py").write_text(MINE.replace("One slope", "A single slope"))
    assert planned(grid, store).runs[-1].id == run.id  # words alone change nothing
    (tmp_path / "mine.py").write_text(MINE.replace("-self.slope *", "-2 * self.slope *"))
    assert planned(grid, store).runs[-1].id != run.id


def test_encodings_are_composed(tiny, store):
    made = positional(["Rotary(4)", "ALiBi(2)", "Randomized(64)", "Sinusoidal(8)"], depth=2)
    places = (made.tokens, made.queries_keys, made.scores, made.positions)
    assert [len(each) for each in places] == [1, 1, 1, 1]
    whole = positional(["Positional(queries_keys=Rotary(4), scores=ALiBi(2))"], depth=2)
    assert len(whole.queries_keys) == len(whole.scores) == 1
    bare = positional(["Rotary(4)", "Sinusoidal(8)"], depth=3, nope_layers=[0, 2])
    assert [len(each.queries_keys) for each in bare] == [0, 1, 0]
    assert len(bare[0].tokens) == 1  # what is added to tokens is no matter of layers
    with pytest.raises(ValueError, match=r"is a OrderedDict, which is no encoding"):
        positional(["collections:OrderedDict()"], depth=1)


def test_the_version_is_that_of_the_source():
    assert version(["ALiBi(4)"]) == version(["posenc.ALiBi(8)"])
    assert version(["ALiBi(4)"]) != version(["KERPLE(4)"])
    assert version(["Rotary(16)"]) != version(["Rotary(Linear(Geometric(16), factor=2))"])


def test_the_learning_rate_is_chosen_by_the_loss_at_the_trained_length(tiny, store):
    text = TINY.replace("steps = 4", "learning_rates = [1e-3, 1e-2]\ntuning_steps = 2\nsteps = 4")
    grid = tiny(text=text)
    plan = planned(grid, store)
    assert (len(plan.runs), plan.waiting) == (4, 4)
    assert {run.configuration.training.steps for run in plan.runs} == {2}
    assert min(run.configuration.seed for run in plan.runs) > 1000  # never a reported one
    losses = {}
    for run in plan.runs:
        outcome = make(run.configuration, store)["outcome"]
        # What a longer row gives has no say: it is best where the trained length is worst.
        rate = run.configuration.training.learning_rate
        losses.setdefault(run.encoding, {})[rate] = outcome["losses"]["4"]
        result = store.result(run.id)
        result["outcome"]["losses"]["8"] = -outcome["losses"]["4"]
        store.keep(run.id, result)
    plan = planned(grid, store)
    assert (plan.waiting, plan.total) == (0, 8)
    for run in plan.runs:
        if run.kind == "reported":
            own = losses[run.encoding]
            assert run.configuration.training.learning_rate == min(own, key=own.__getitem__)
    for run in plan.runs:  # what diverged is not chosen, however little it had lost until then
        result = store.result(run.id)
        if run.kind == "tuning":
            rate = run.configuration.training.learning_rate
            best = rate == min(losses[run.encoding], key=losses[run.encoding].__getitem__)
            result["outcome"]["diverged"] = best
            store.keep(run.id, result)
    for run in planned(grid, store).runs:
        if run.kind == "reported":
            own = losses[run.encoding]
            assert run.configuration.training.learning_rate == max(own, key=own.__getitem__)


@pytest.mark.parametrize(
    "more",
    [
        '[[encodings]]\nname = "again"\nuse = "ALiBi(2)"',
        '[[tasks]]\ntask = "k_front"\nname = "again"\ntrained = 4\ntested = [4, 8]\nk = 2',
    ],
)
def test_two_names_of_one_run_are_refused(tiny, store, more):
    with pytest.raises(ValueError, match=r"k_front · .* and .*again.* are one and the same run"):
        planned(tiny(more), store)


def test_whole_numbers_and_reals_of_one_value_are_one_run(tiny, store):
    ids = [
        [r.id for r in planned(tiny(text=TINY.replace("steps = 4", text)), store).runs]
        for text in (
            "steps = 4\nclip = 2\nweight_decay = 0",
            "steps = 4\nclip = 2.0\nweight_decay = 0.0",
        )
    ]
    assert ids[0] == ids[1]


def test_two_extensions_of_one_name_are_refused(tiny):
    """A report would show the runs of both as one."""
    rotary = '[[encodings]]\nname = "{0}"\nuse = "Rotary({{head_dim}}, base={1})"\n'
    extension = '[[extensions]]\nname = "{1}"\nof = "{0}"\nuse = "Rotary(4)"\nfactors = [{2}]\n'
    both = rotary.format("one", 100.0) + rotary.format("other", 500.0)
    assert tiny(both + extension.format("one", "A", 2) + extension.format("other", "A", 4))
    with pytest.raises(GridError, match=r"line 39: 'A ×2' is the name of two encodings"):
        tiny(both + extension.format("one", "A", 2) + extension.format("other", "A", 2))
    with pytest.raises(GridError, match=r"'ALiBi ×2' is the name of two"):
        tiny(both.replace("other", "ALiBi ×2") + extension.format("one", "ALiBi", 2))


def test_extensions_wait_for_what_they_extend(tiny, store):
    more = """
[[encodings]]
name = "Rotary"
use = "Rotary({head_dim})"

[[extensions]]
name = "Linear"
of = "Rotary"
use = "Rotary(Linear(Geometric({head_dim}), factor={factor}))"
factors = [2, 4]
steps = [0, 3]
"""
    plan = planned(tiny(more), store)
    extended = [run for run in plan.runs if run.kind == "extended"]
    assert [run.encoding for run in extended[:4]] == [
        "Linear ×2", "Linear ×2, tuned 3 steps", "Linear ×4", "Linear ×4, tuned 3 steps"
    ]  # fmt: skip
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
    assert seconds_left(plan, store, "here", 1) == 3 * 2.0
    assert seconds_left(plan, store, "here", 2) == 3.0
    assert seconds_left(plan, store, "elsewhere", 1) is None
    store.note_failure(plan.runs[1].id, "an error", final=True)  # nobody makes it again
    assert seconds_left(plan, store, "here", 1) == 2 * 2.0
