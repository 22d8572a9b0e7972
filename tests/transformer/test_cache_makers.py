"""A cache knows whose keys it holds, and serves no other."""

import copy
import io
import pickle
from functools import partialmethod

import pytest
import torch

from posenc import ALiBi, Learned, Positional, RelativeBias, Rotary, T5Bias
from posenc.transformer import Encoder, KeyValueCache, LayerCache, MultiHeadAttention
from posenc.transformer.version import version_of_all

ANOTHER = r"keys that another encoder made.*call cache\.hand_over\(\) first"
WRITTEN = r"before its weights were written to.*call cache\.hand_over\(\) first"


def encoder(seed: int = 0, **options) -> Encoder:
    torch.manual_seed(seed)
    options.setdefault("positional", Positional(queries_keys=Rotary(4)))
    return Encoder(8, 2, 2, is_causal=True, **options).eval()


PROMPT, STEP = (
    torch.randn(1, seq, 8, generator=torch.Generator().manual_seed(seq)) for seq in (4, 1)
)


def filled(by: Encoder, size: int | None = None) -> KeyValueCache:
    cache = KeyValueCache(size)
    with torch.no_grad():
        by(PROMPT, cache=cache)
    return cache


def goes_on(model: Encoder, cache: KeyValueCache) -> None:
    """What comes out behind the cache is what one pass over everything gives."""
    with torch.no_grad():
        whole = model(torch.cat((PROMPT, STEP), dim=1))[:, -1:]
        torch.testing.assert_close(model(STEP, cache=cache), whole)


@pytest.mark.parametrize("size", [None, 8])
def test_the_keys_of_another_encoder_of_equal_depth_are_refused(size):
    first, second = encoder(0), encoder(1)
    cache = filled(first, size)
    with pytest.raises(ValueError, match=ANOTHER), torch.no_grad():
        second(STEP, cache=cache)
    assert cache.length == 4
    goes_on(first, cache)


def test_a_first_pass_that_fails_binds_the_cache_to_nobody():
    first, second = encoder(positional=Positional(Learned(8, 2))), encoder(1)
    for size in (None, 8):
        cache = KeyValueCache(size)
        with pytest.raises(ValueError, match="Position"):
            first(PROMPT, cache=cache)
        second(PROMPT, cache=cache)


@pytest.mark.parametrize("size", [None, 8])
def test_an_emptied_cache_serves_anyone(size):
    first, second = encoder(0), encoder(1)
    cache = filled(first, size)
    cache.crop(0)
    with torch.no_grad():
        second(PROMPT, cache=cache)
    goes_on(second, cache)


@pytest.mark.parametrize("size", [None, 8])
def test_cropped_reordered_repeated_and_copied_it_serves_whom_it_served(size):
    first, cache = encoder(), filled(encoder(1), size)
    cache = filled(first, size)
    with torch.no_grad():
        first(torch.randn(1, 2, 8), cache=cache)
    cache.crop(4)
    cache.reorder(torch.tensor([0]))
    cache.repeat(1)
    branch = copy.deepcopy(cache)
    goes_on(first, cache)
    goes_on(first, branch)
    with pytest.raises(ValueError, match=ANOTHER):
        encoder(1)(STEP, cache=copy.deepcopy(cache))


def test_a_copied_encoder_takes_keys_when_that_is_said():
    first = encoder()
    twin, cache = copy.deepcopy(first), filled(first)
    with pytest.raises(ValueError, match=ANOTHER):
        twin(STEP, cache=cache)
    cache.hand_over()
    goes_on(twin, cache)
    with pytest.raises(ValueError, match=ANOTHER):
        first(STEP, cache=cache)


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))],
    ids=["copied", "pickled"],
)
@pytest.mark.parametrize("order", [1, -1])
def test_copied_together_they_serve_each_other(copied, order):
    first = encoder()
    twin, cache = copied((first, filled(first))[::order])[::order]
    with pytest.raises(ValueError, match=ANOTHER):
        first(STEP, cache=copy.copy(cache))
    goes_on(twin, cache)


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_gradients_pass_through_a_copy(copied, size):
    model, x, cache = encoder(), PROMPT.clone().requires_grad_(), KeyValueCache(size)
    model(x, cache=cache)
    found, expected = (
        torch.autograd.grad(out.square().sum(), x, retain_graph=True)[0]
        for out in (
            model(STEP, cache=copied(cache)),
            model(torch.cat((x, STEP), dim=1))[:, -1:],
        )
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("filling", [True, False])
def test_a_cache_from_an_older_file_may_be_handed_over(size, filling):
    """What was not noted when it was written is what holds of all that come from files."""
    model = encoder()
    cache = filled(model, size) if filling else KeyValueCache(size)
    for each in (cache, *cache.layers):
        del each.begun_in
    loaded = pickle.loads(pickle.dumps(cache))
    assert {each.begun_in for each in (loaded, *loaded.layers)} == {-1 if filling else None}
    loaded.hand_over()
    if not filling:
        model(PROMPT, cache=loaded)
    goes_on(model, loaded)


def test_a_cache_from_a_file_is_asked_whose_it_is():
    first, file = encoder(), io.BytesIO()
    torch.save(filled(first), file)
    file.seek(0)
    cache = torch.load(file, weights_only=False)
    with pytest.raises(ValueError, match="the cache came from a file"):
        first(STEP, cache=cache)
    cache.hand_over()
    goes_on(first, cache)


@pytest.mark.parametrize("change", ["positional", "inside"])
def test_other_encodings_are_refused(change):
    model = encoder(positional=Positional(scores=ALiBi(2)))
    cache = filled(model)
    if change == "positional":
        model.positional = Positional()
    else:
        model.positional.scores[0] = ALiBi(2, alibi_bias_max=4)
    with pytest.raises(ValueError, match=ANOTHER):
        model(STEP, cache=cache)


@pytest.mark.parametrize("change", ["optimizer", "load_state_dict"])
def test_weights_written_to_are_noticed(change):
    model = encoder()
    cache = filled(model)
    if change == "optimizer":
        model(PROMPT).square().sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    else:
        model.load_state_dict(encoder(1).state_dict())
    with pytest.raises(ValueError, match=WRITTEN):
        model(STEP, cache=cache)
    cache.hand_over()  # a memory kept while training
    model(STEP, cache=cache)
    goes_on(model, filled(model))


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_steps_of_fused_optimizers_are_noticed(optimizer):
    """Their writes are not in torch's count; those of another model are nobody's business."""
    model, other = encoder(0), encoder(1)
    caches = filled(model), filled(other)
    make, versions = getattr(torch.optim, optimizer), [p._version for p in model.parameters()]
    model(PROMPT).square().sum().backward()
    make(model.parameters(), lr=0.1, fused=True).step()
    assert [p._version for p in model.parameters()] == versions
    with pytest.raises(ValueError, match=WRITTEN), torch.no_grad():
        model(STEP, cache=caches[0])
    goes_on(model, filled(model))
    goes_on(other, caches[1])


LEARNED = Positional(tokens=Learned(8, 8), scores=T5Bias(2, bidirectional=False))


@pytest.mark.parametrize(
    "name", [name for name, _ in encoder(positional=LEARNED).named_parameters()]
)
def test_every_weight_that_is_written_to_is_noticed(name):
    """Weights of keys alone were watched, not those of values, norms and blocks before."""
    model = encoder(positional=copy.deepcopy(LEARNED))
    cache = filled(model)
    with torch.no_grad():
        model.get_parameter(name).mul_(2)
    with pytest.raises(ValueError, match=WRITTEN), torch.no_grad():
        model(STEP, cache=cache)


SETTINGS = {
    "window": lambda model, value: setattr(model, "windows", [value, None]),
    "window inside": lambda model, value: model.windows.__setitem__(0, value),
    "scale": lambda model, value: setattr(model.blocks[0].attention, "scale", value or 0.5),
    "norm": lambda model, value: setattr(model.blocks[1], "norm", "pre" if value else "post"),
    "eps": lambda model, value: setattr(model.blocks[0].attention_norm, "eps", value or 1e-5),
    "activation": lambda model, value: setattr(
        model.blocks[0].feed_forward, "activation", torch.tanh if value else torch.relu
    ),
}


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_set_while_a_cache_is_filled_is_noticed(name, size):
    """Keys of a second layer would be those of two models, and the numbers of neither."""
    model, change = encoder(), SETTINGS[name]
    change(model, None)
    cache = filled(model, size)
    change(model, 2)
    with pytest.raises(ValueError, match=r"was set to something else.*cache\.hand_over\(\)"):
        goes_on(model, cache)
    change(model, None)
    goes_on(model, cache)
    change(model, 2)
    cache.crop(0)
    with torch.no_grad():
        model(PROMPT, cache=cache)
    goes_on(model, cache)


def test_what_an_encoding_of_somebody_is_set_to_is_noticed_and_what_it_notes_is_not():
    class Steep(ALiBi):
        __module__ = "somebodys"

        def __init__(self, heads, *, steep=1.0):
            super().__init__(heads)
            self.steep, self.calls = steep, 0

        table = RelativeBias.table

        def profile(self, *distances, **options):
            self.calls += 1
            self.last = self.steep * super().profile(*distances, **options)
            return self.last

    model = encoder(positional=Positional(scores=Steep(2)))
    cache = filled(model)
    goes_on(model, cache)
    cache.crop(4)
    model.positional.scores[0].steep = 2.0
    with pytest.raises(ValueError, match="was set to something else"):
        goes_on(model, cache)


def test_weights_that_are_replaced_twice_are_noticed():
    """New parameters have no writes to count, as those before them."""
    model = encoder()
    for seed in (1, 2):
        model.load_state_dict(encoder(seed).state_dict(), assign=True)
        if seed == 1:
            cache = filled(model)
    with pytest.raises(ValueError, match=WRITTEN), torch.no_grad():
        model(STEP, cache=cache)


def test_weights_of_another_functional_call_are_noticed():
    model, cache = encoder(), KeyValueCache()
    one, other = ({n: p.detach() for n, p in encoder(seed).named_parameters()} for seed in (1, 2))
    call = torch.func.functional_call
    with torch.no_grad():
        call(model, one, (PROMPT,), {"cache": cache})
        again = {name: weight.detach() for name, weight in one.items()}
        got = call(model, again, (STEP,), {"cache": cache})
        whole = call(model, one, (torch.cat((PROMPT, STEP), dim=1),))[:, -1:]
        torch.testing.assert_close(got, whole)
        with pytest.raises(ValueError, match=WRITTEN):
            call(model, other, (STEP,), {"cache": cache})


def test_a_layer_alone_notices_its_values():
    layer, cache = MultiHeadAttention(8, 2), LayerCache()
    with torch.no_grad():
        layer(PROMPT, cache=cache)
        layer.values.weight.mul_(2)
        with pytest.raises(ValueError, match=WRITTEN):
            layer(STEP, cache=cache)


def test_another_mode_is_no_write():
    model = encoder()
    cache = filled(model)
    goes_on(model.train().eval().double().float().requires_grad_(False), cache)


def test_a_cast_is_noticed_where_autocast_would_take_its_keys():
    model = encoder()
    cache = filled(model)
    model.bfloat16()
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(ValueError, match=WRITTEN),
        torch.no_grad(),
    ):
        model(STEP.bfloat16(), cache=cache)


def test_sparse_weights_that_are_written_to_are_noticed():
    sparse = torch.nn.Module()
    sparse.weight = torch.nn.Parameter(torch.eye(3).to_sparse(), requires_grad=False)
    before = version_of_all(sparse)
    assert before == version_of_all(sparse)
    sparse.weight.mul_(2)
    assert before != version_of_all(sparse)


def freed(weight: torch.nn.Parameter) -> None:
    weight.data = torch.empty(0)


def moved(weight: torch.nn.Parameter) -> None:
    weight.data = weight.data.clone()


def put_away(model: Encoder, rest) -> None:
    """Weights that are there while a module runs, and otherwise what ``rest`` leaves of them."""
    for module in model.modules():
        own = {each: each.data for each in module.parameters(recurse=False)}
        if not own:
            continue

        def bring(*_, own=own):
            for weight, data in own.items():
                weight.data = data.clone()

        def take(*_, own=own):
            for weight in own:
                rest(weight)

        module.register_forward_pre_hook(bring)
        module.register_forward_hook(take)
        take()


@pytest.mark.parametrize("rest", [freed, moved])
def test_weights_that_are_elsewhere_between_passes_are_no_others(rest):
    model = encoder()
    put_away(model, rest)
    cache = filled(model)
    goes_on(model, cache)
    cache.crop(4)
    goes_on(model, cache)


def test_weights_that_are_another_on_the_meta_device_at_each_pass_are_no_others():
    model = encoder()
    keys = model.blocks[0].attention.keys
    own = dict(keys.named_parameters())

    def bring(*_):
        for name, weight in own.items():
            setattr(keys, name, weight)

    def take(*_):
        for name, weight in own.items():
            setattr(keys, name, torch.nn.Parameter(weight.to("meta")))

    keys.register_forward_pre_hook(bring)
    keys.register_forward_hook(take)
    take()
    goes_on(model, filled(model))


class Lazy(torch.nn.Linear):
    """It settles what it was built with when it first runs."""

    __module__ = "somebodys"

    def __init__(self, width, *, seen=None, rates=None, gain=1.0):
        super().__init__(width, width)
        self.seen, self.rates, self.gain = seen, rates, gain

    def forward(self, x):
        self.seen = self.seen or x.shape[-1]
        self.rates = torch.ones(1, dtype=torch.float64) if self.rates is None else self.rates
        self.rates = self.rates.to(x.dtype).clone()
        return self.gain * super().forward(x)


def test_what_a_part_of_somebody_settles_is_no_setting_and_what_it_is_set_to_is():
    model = encoder()
    model.blocks[0].attention.keys = part = Lazy(8)
    cache = filled(model)
    goes_on(model, cache)
    cache.crop(4)
    part.gain = 2.0
    with pytest.raises(ValueError, match="was set to something else"):
        goes_on(model, cache)
    part.gain = 1.0
    goes_on(model, cache)


class Counting(torch.nn.Linear):
    """A layer of somebody that counts its calls by the name of an argument."""

    def __init__(self, width, calls=0):
        super().__init__(width, width)
        self.calls = calls

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def test_the_setting_that_is_another_one_is_named_and_what_to_do_where_it_is_none():
    model = encoder()
    model.blocks[0].attention.keys = Counting(8)
    cache = filled(model)
    words = r"\(calls of Counting\).* only counts what runs .*call cache\.hand_over\(\) first"
    with pytest.raises(ValueError, match=words):
        goes_on(model, cache)
    cache.hand_over()
    goes_on(model, cache)
    model.windows = 2
    cache = filled(model)
    model.windows = None
    with pytest.raises(ValueError, match=r"something else \(windows of Encoder\)"):
        goes_on(model, cache)


def test_constructors_that_tell_no_names_are_no_hindrance():
    model = encoder()
    init = partialmethod(torch.nn.Linear.__init__, bias=False)
    model.blocks[0].attention.keys = type("NoBias", (torch.nn.Linear,), {"__init__": init})(8, 8)
    goes_on(model, filled(model))


class Mine(Encoder):
    """An encoder of somebody, who notes things on it."""

    __module__ = "somebodys"

    def __init__(self, **options):
        super().__init__(8, 2, 2, is_causal=True, **options)
        self.calls, self.range = 0, None

    def forward(self, *args, **options):
        self.calls += 1
        self.range = self.calls  # a word that our constructor calls, and sets nothing by
        return super().forward(*args, **options)


@pytest.mark.parametrize("module", ["somebodys", "torch.distributed.fsdp"])
def test_what_is_set_on_a_class_that_inherits_ours_is_noticed(module):
    model = type("Made", (Mine,), {"__module__": module})().eval()
    cache = filled(model)
    goes_on(model, cache)
    cache.crop(4)
    model.windows = 2
    with pytest.raises(ValueError, match="was set to something else"):
        goes_on(model, cache)
    model.windows = None
    goes_on(model, cache)


def test_one_cache_for_two_layers_is_refused():
    torch.manual_seed(0)
    first, second = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2)
    cache = LayerCache()
    first(PROMPT, cache=cache)
    with pytest.raises(ValueError, match="another attention layer made"):
        second(PROMPT, cache=cache)
    cache.hand_over()
    second(PROMPT, cache=cache)


@pytest.mark.slow("several graphs")
@pytest.mark.compiles
def test_compiled_steps_serve_their_own_and_refuse_others():
    first, second = encoder(0), encoder(1)
    step = torch.compile(first, fullgraph=True, backend="eager")
    with torch.no_grad():
        whole = first(torch.cat((PROMPT, STEP), dim=1))[:, -1:]
        torch.testing.assert_close(step(STEP, cache=filled(first, 8)), whole)
        with pytest.raises(Exception, match="another encoder made"):
            step(STEP, cache=filled(second, 8))


@pytest.mark.slow("a graph more")
@pytest.mark.compiles
def test_a_prompt_that_is_read_in_a_graph_binds_the_cache():
    first, second = encoder(0), encoder(1)
    cache = KeyValueCache(8)
    with torch.no_grad():
        torch.compile(first, fullgraph=True, backend="eager")(PROMPT, cache=cache)
        with pytest.raises(ValueError, match=ANOTHER):
            second(STEP, cache=copy.deepcopy(cache))
    goes_on(first, cache)
