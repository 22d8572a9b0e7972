"""The contract battery on every encoding of the tokens place."""

from tests.contracts.checks import MORE, contract

from posenc import Learned, Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.testing import Case

SINUSOIDAL_CHANGES = {
    "base": 100.0,
    "convention": "per_dimension",
    "scale": "sqrt_dim",
    "dropout": 0.5,
    "offset": 3,
    "batch_first": False,
    "arithmetic": "float32",
}
CASES = {
    "sinusoidal": Case(Sinusoidal, {"dim": 16}, SINUSOIDAL_CHANGES),
    "sinusoidal-scaled": Case(
        Sinusoidal, {"dim": 16, "scale": "sqrt_dim"}, {**SINUSOIDAL_CHANGES, "scale": None}
    ),
    "learned": Case(
        Learned,
        {"dim": 6, "max_len": 64},
        {"offset": 2, "std": 0.5, "dropout": 0.5, "batch_first": False},
        limit=64,
    ),
}
CONVENTION_CASES = {
    f"{name}-{dim}": Case(
        Sinusoidal, {"dim": dim, "convention": name}, SINUSOIDAL_CHANGES | {"convention": "paper"}
    )
    for name, convention in CONVENTIONS.items()
    for dim in (10, 9)
    if name != "paper" and (dim % 2 == 0 or convention.odd)
} | {"paper-9": Case(Sinusoidal, {"dim": 9}, SINUSOIDAL_CHANGES)}

test_contract = contract(CASES)
test_contract_of_every_convention = contract(CONVENTION_CASES, MORE, compiling=False)
