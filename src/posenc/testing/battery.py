"""All checks, as a list for any test runner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from posenc.testing import claims, compilation, differentiation, purity, reals, serving, shapes
from posenc.testing.cases import FEWEST, Case

PLAIN = (
    shapes.shape_and_dtype,
    shapes.stays_finite,
    shapes.dtypes_agree,
    shapes.content_is_left_alone,
    shapes.arguments_matter,
    shapes.scale_and_key_heads,
    shapes.parameters_are_made_as_asked,
    purity.purity,
    purity.training_changes_nothing_but_by_chance,
    purity.casts,
    purity.narrow_encodings,
    purity.autocast,
    purity.default_dtype,
    purity.copies,
    purity.meta_device,
    purity.owns_parameters_only,
    serving.encodes_the_sequence,
    serving.prefill_equals_decoding,
    serving.kept_rows_serve,
    serving.sharded,
    serving.left_padded,
    serving.packed,
    serving.rows_stand_alone,
    serving.neighbors_do_not_matter,
    serving.neighbors_stay_distinct,
    serving.attention_at_another_scale,
    differentiation.gradients,
    differentiation.gradients_change_nothing,
    differentiation.gradients_of_narrow_content,
    differentiation.gradients_stay_finite,
    claims.claims,
    reals.reals,
)

COMPILING = (
    compilation.compiled_equals_eager,
    compilation.growing_lengths_do_not_recompile,
    compilation.exports,
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
    function: Callable[[Case], str | None]
    compiles: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def __call__(self) -> str | None:
        limit = self.case.limit
        try:
            return self.function(self.case)
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
    checks = [Check(case, function) for function in PLAIN]
    if compiling:
        checks += [Check(case, function, compiles=True) for function in COMPILING]
    return checks


def batteries(cases: Mapping[str, Case], *, compiling: bool = True) -> dict[str, Check]:
    """Every check for several encodings, named by encoding and check.

    Args:
        cases: The encodings by name.
        compiling: Whether to include the checks that compile.

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
