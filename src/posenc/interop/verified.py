"""The model types whose reading was held against the running model of transformers."""

from functools import cache
from importlib.resources import files


@cache
def _listed() -> frozenset[str]:
    text = files("posenc.interop").joinpath("verified.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


class _Verified:
    """The types, read when one is first asked for."""

    def __contains__(self, model_type: object) -> bool:
        return model_type in _listed()


VERIFIED = _Verified()
"""Written by ``python -m tests.oracle_models``, whose runs ``docs/models.md`` tells."""
