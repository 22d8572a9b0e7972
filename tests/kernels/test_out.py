"""Where results may be written, and operands without memory: refused in words by every backend."""

import math

import pytest
import torch

from posenc import Rotary, Sinusoidal
from posenc.kernels.addition import cpu as addition
from posenc.kernels.addition.operator import scaled_sum
from posenc.kernels.embedding.operator import embedded
from posenc.kernels.library import library
from posenc.kernels.out import written
from posenc.kernels.rotary import cpu as rotary
from posenc.kernels.rotary.operator import rotate
from posenc.kernels.sincos import cpu as sincos
from posenc.kernels.sincos.operator import cos_sin

native = pytest.param("C", marks=pytest.mark.skipif(library() is None, reason="no library"))


@pytest.fixture(params=[native, "torch"])
def backend(request, monkeypatch):
    """With the kernels in C, and without; those of Triton are in ``interpreted/``."""
    if request.param == "torch":
        for module in (addition, rotary, sincos):
            monkeypatch.setattr(module, "_native", lambda: None)
        monkeypatch.setattr(rotary, "_native_with_tensors", lambda: None)
    return request.param


SHARED = "out shares memory with {}, which would be overwritten"
ONE_PLACE = "some of its elements are in one place"

ENCODING = Rotary(4)
POSITIONS = torch.arange(3)


@pytest.mark.usefixtures("backend")
def test_a_rotation_is_not_written_over_its_table():
    x, table = torch.randn(1, 2, 3, 4), ENCODING.table(torch.arange(24))
    kept, out = table.clone(), table.view(-1)[:24].view(1, 2, 3, 4)
    with pytest.raises(ValueError, match=SHARED.format("table")):
        ENCODING.encode_queries(x, table[:3], out=out)
    with pytest.raises(ValueError, match=SHARED.format("table")):
        ENCODING.encode_both(x, x[:, :1].clone(), table, POSITIONS, out=(out, x[:, 1:]))
    cos, sin = torch.randn(2, 3, 2)
    with pytest.raises(ValueError, match=SHARED.format("sin")):
        rotate(torch.randn(3, 2), cos[:, :1], sin[:, :1], out=sin)
    assert torch.equal(table, kept)


@pytest.mark.usefixtures("backend")
def test_a_rotation_is_not_written_over_its_positions():
    positions = torch.zeros(24, dtype=torch.int64)
    x, table = torch.randn(1, 2, 3, 4), ENCODING.table(torch.arange(5))
    out = positions.view(torch.float32)[4:28].view(1, 2, 3, 4)
    with pytest.raises(ValueError, match=SHARED.format("positions")):
        ENCODING.encode_both(x, x, table, positions[:3], out=(out, torch.empty_like(x)))
    assert not positions.any()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    "out",
    [
        torch.zeros(1, 1, 3, 4).expand(1, 2, 3, 4),
        torch.zeros(1, 2, 1, 4).expand(1, 2, 3, 4),
        torch.zeros(1, 2, 3, 1).expand(1, 2, 3, 4),
        torch.zeros(24).as_strided((1, 2, 3, 4), (0, 6, 4, 1)),
    ],
    ids=["one head", "one token", "one channel", "tokens reach into heads"],
)
def test_nothing_is_written_where_elements_share_a_place(out):
    x, table = torch.randn(1, 2, 3, 4), ENCODING.table(POSITIONS)
    with pytest.raises(ValueError, match=ONE_PLACE):
        ENCODING.encode_queries(x, table, out=out)
    with pytest.raises(ValueError, match=ONE_PLACE):
        scaled_sum(x, torch.randn(3, 4), out=out)
    assert not out.any()


@pytest.mark.usefixtures("backend")
def test_queries_and_keys_are_not_written_to_one_place():
    q, k, table = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4), ENCODING.table(POSITIONS)
    with pytest.raises(ValueError, match=SHARED.format("the other out")):
        ENCODING.encode_both(q, k, table, out=(q, q))
    room = torch.zeros(1, 3, 3, 4)
    with pytest.raises(ValueError, match=SHARED.format("the other out")):
        ENCODING.encode_both(q, k, table, out=(room[:, :2], room[:, 1:]))
    assert not room.any()


@pytest.mark.usefixtures("backend")
def test_queries_stay_as_they_were_where_keys_are_refused():
    q, table = torch.randn(1, 2, 3, 4), ENCODING.table(POSITIONS)
    k, before = torch.randn(1, 1, 3, 4).expand_as(q), q.clone()
    with pytest.raises(ValueError, match=ONE_PLACE):
        ENCODING.encode_both(q, k, table, out=(q, k))
    assert torch.equal(q, before)


@pytest.mark.usefixtures("backend")
def test_results_may_go_to_what_is_no_longer_read():
    """Everything is computed before anything is written, so this is no loss."""
    q, k, table = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4), ENCODING.table(POSITIONS)
    want = ENCODING.encode_both(q, k, table)
    crossed = q.clone(), k.clone()
    made = ENCODING.encode_both(*crossed, table, out=crossed[::-1])
    assert torch.equal(made[0], want[0])
    assert torch.equal(made[1], want[1])
    room = torch.zeros(1, 2, 4, 4)
    room[:, :, 1:] = q
    assert torch.equal(ENCODING.encode_queries(room[:, :, 1:], table, out=room[:, :, :3]), want[0])


@pytest.mark.usefixtures("backend")
def test_slices_of_one_buffer_are_rotated_in_place():
    joined, table = torch.randn(2, 3, 7, 4), ENCODING.table(POSITIONS)
    encoding = Rotary(4, heads_first=False)
    q, k, v = joined.split((4, 2, 1), dim=2)
    want = [*encoding.encode_both(q, k, table), v.clone()]
    encoding.encode_both(q, k, table, out=(q, k))
    assert torch.equal(joined, torch.cat(want, dim=2))


@pytest.mark.usefixtures("backend")
def test_a_sum_is_not_written_over_what_it_reads():
    table = torch.ones(3, 4)
    with pytest.raises(ValueError, match=SHARED.format("table")):
        scaled_sum(torch.ones(3, 4), table, out=table)
    numbers = torch.zeros(24, dtype=torch.int64)
    into = numbers.view(torch.float32)[:12].view(3, 4)
    with pytest.raises(ValueError, match=SHARED.format("positions")):
        scaled_sum(torch.ones(3, 4), table, numbers[:3], out=into)
    with pytest.raises(ValueError, match=SHARED.format("ids")):
        embedded(numbers[:3], torch.ones(5, 4), out=into)
    weight = torch.ones(5, 4)
    with pytest.raises(ValueError, match=SHARED.format("weight")):
        embedded(torch.arange(3), weight, out=weight[2:])
    assert (table == 1).all()
    assert not numbers.any()


@pytest.mark.usefixtures("backend")
def test_a_table_is_not_written_over_its_positions():
    positions = torch.arange(12)
    out = positions.view(torch.float32)[:24].view(12, 2, 1)
    with pytest.raises(ValueError, match=SHARED.format("positions")):
        Rotary(2).table(positions, out=out)
    with pytest.raises(ValueError, match=ONE_PLACE):
        Rotary(4).table(torch.arange(3), out=torch.zeros(3, 2, 1).expand(3, 2, 2))
    assert torch.equal(positions, torch.arange(12))


BEGIN = 0


@pytest.fixture(params=[0, 8], ids=["all of it", "a slice"])
def _begin(request, monkeypatch):
    """Where in the memory that was given back tensors begin: addresses of slices are not 0."""
    monkeypatch.setattr(f"{__name__}.BEGIN", request.param)


def freed(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor whose storage was given back, as of a sharded parameter outside of its module."""
    whole = torch.ones(BEGIN + math.prod(shape), dtype=dtype)
    made = whole[BEGIN:].view(shape)
    whole.untyped_storage().resize_(0)
    return made


X, TABLE = torch.randn(1, 2, 3, 4), ENCODING.table(torch.arange(24))


@pytest.mark.usefixtures("backend", "_begin")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("table", lambda: ENCODING.encode_queries(X, freed(3, 2, 2))),
        ("table", lambda: ENCODING.encode_both(X, X, freed(9, 2, 2), POSITIONS)),
        ("x", lambda: ENCODING.encode_queries(freed(1, 2, 3, 4), TABLE[:3])),
        ("positions", lambda: ENCODING.encode_both(X, X, TABLE, freed(3, dtype=torch.int64))),
        ("out", lambda: ENCODING.encode_queries(X, TABLE[:3], out=freed(1, 2, 3, 4))),
        ("cos", lambda: rotate(X, freed(3, 2), freed(3, 2))),
        ("out", lambda: ENCODING.table(POSITIONS, out=freed(3, 2, 2))),
        ("out", lambda: Sinusoidal(4).table(POSITIONS, out=freed(3, 4))),
        ("table", lambda: Sinusoidal(4).encode(torch.ones(3, 4), freed(3, 4))),
        ("x", lambda: ENCODING.encode_both(X, freed(1, 2, 3, 4), TABLE, POSITIONS)),
        ("positions", lambda: cos_sin(ENCODING.sincos, freed(3, dtype=torch.int64))),
        ("table", lambda: scaled_sum(X, freed(3, 4))),
        ("table", lambda: scaled_sum(X, freed(3, 4), dropout=0.5)),
        ("table", lambda: scaled_sum(X, freed(3, 4), dropout=1.0)),
        ("table", lambda: scaled_sum(X.clone().requires_grad_(), freed(3, 4))),
        ("positions", lambda: scaled_sum(X, torch.ones(3, 4), freed(3, dtype=torch.int64))),
        ("x", lambda: scaled_sum(freed(3, 4), torch.ones(3, 4))),
        ("weight", lambda: embedded(POSITIONS, freed(5, 4))),
        ("ids", lambda: embedded(freed(3, dtype=torch.int64), torch.ones(5, 4))),
    ],
)  # fmt: skip
def test_what_has_no_memory_is_refused(name, call):
    """Torch's own operations end the process there."""
    with pytest.raises(ValueError, match=rf"^{name} has shape .* and no memory: its storage was"):
        call()


@pytest.mark.usefixtures("backend")
def test_torchs_zero_tensors_are_zeros():
    """They have no memory either, and mean something."""
    zero = torch._efficientzerotensor
    assert not ENCODING.encode_queries(X, zero((3, 2, 2))).any()
    assert not ENCODING.encode_both(X, X, zero((9, 2, 2)), POSITIONS)[1].any()
    assert not ENCODING.encode_queries(X, zero((9, 2, 2))[6:]).any()
    with pytest.raises(RuntimeError, match="immutable"):
        Sinusoidal(4).table(POSITIONS, out=zero((3, 4)))
    assert torch.equal(scaled_sum(X, zero((3, 4)), scale=2.0), 2 * X)
    assert torch.equal(
        scaled_sum(zero((3, 4)), TABLE[:3, 0].repeat(1, 2)), TABLE[:3, 0].repeat(1, 2)
    )


def test_sizes_and_dtypes_are_told():
    with pytest.raises(
        ValueError, match=r"out is torch.float32 \(2,\); it must be .* \(3,\), as x"
    ):
        written(torch.zeros(3), torch.zeros(2))


def test_compiled_code_is_left_to_torch():
    """Addresses are not known while compiling; torch refuses an expanded output by itself."""
    x, table = torch.randn(1, 2, 3, 4), ENCODING.table(POSITIONS)
    run = torch.compile(
        lambda x, out: ENCODING.encode_queries(x, table, out=out), backend="eager", fullgraph=True
    )
    with pytest.raises(RuntimeError, match="single memory location"):
        run(x, torch.zeros(1, 1, 3, 4).expand(1, 2, 3, 4))
