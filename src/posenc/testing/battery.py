"""All checks, as a list for any test runner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import isfunction

from posenc.testing import claims, purity, serving, shapes, transforms
from posenc.testing.cases import FEWEST, Case, Subject

CHECKS: tuple[Callable[[Subject], str | None], ...] = tuple(
    each
    for module in (shapes, purity, serving, transforms, claims)
    for name, each in vars(module).items()
    if isfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
)


@dataclass(frozen=True)
class Check:
    """One check on one case; calling it raises an AssertionError where the contract is broken.

    It returns ``None``, or why the check does not apply to this case.

    Attributes:
        case: The encoding.
        function: The check; its docstring says what it checks.
        compiles: Whether it calls torch.compile or torch.export, which takes seconds.
    """

    case: Case
    function: Callable[[Subject], str | None]
    compiles: bool = False

    @property
    def name(self) -> str:
        """That of its function."""
        return self.function.__name__

    def __call__(self) -> str | None:
        limit = self.case.limit
        try:
            return self.function(self.case.subject())
        except (ValueError, IndexError) as refusal:
            if limit is None or limit >= FEWEST:
                raise
            return f"it has {limit} positions and the check may need {FEWEST}: {refusal}"

    def __str__(self) -> str:
        return self.name


def battery(case: Case, *, compiling: bool = True) -> list[Check]:
    """Every check for one encoding.

    Args:
        case: How to build the encoding, and what to change.
        compiling: Whether to include the checks that compile.

    Example:
        >>> from posenc import Learned
        >>> checks = battery(Case(Learned, {"dim": 8, "max_len": 16}, limit=16), compiling=False)
        >>> checks[0]()
    """
    checks = [Check(case, function, function in transforms.COMPILING) for function in CHECKS]
    return [check for check in checks if compiling or not check.compiles]


def batteries(cases: Mapping[str, Case], *, compiling: bool = True) -> dict[str, Check]:
    """``battery`` for several encodings, each check named by encoding and check.

    Example:
        >>> from posenc import Sinusoidal
        >>> list(batteries({"sinusoidal": Case(Sinusoidal, {"dim": 8})}))[0]
        'sinusoidal-shape_and_dtype'
    """
    return {
        f"{name}-{check}": check
        for name, case in cases.items()
        for check in battery(case, compiling=compiling)
    }
