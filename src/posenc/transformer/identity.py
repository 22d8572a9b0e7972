"""Who made the keys that a cache holds."""

from typing import Any

from posenc.transformer.version import Version, set_since


class Identity:
    """Who a module is: a copy of it is another, and so is what was unpickled.

    A cache that is copied or pickled together with its module goes on serving that module's copy.
    """

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Identity":
        copied = memo[id(self)] = Identity()
        for maker in memo.get((Maker, id(self)), ()):  # of caches that were copied before
            maker.identity, maker.version = copied, None
        return copied


class Maker:
    """Who made the keys that a cache holds, and what with.

    Args:
        identity: Of the module.
        version: Of what makes keys and values, as of ``version_of_all``; ``None``: nothing is known
            of that, as in a graph.
    """

    def __init__(self, identity: Identity, version: Version | None = None) -> None:
        self.identity, self.version = identity, version

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Maker":
        copied = memo.get(id(self.identity))
        if isinstance(copied, Identity):  # with its module, whose weights begin to count anew
            return Maker(copied)
        alone = Maker(self.identity, self.version)
        memo.setdefault((Maker, id(self.identity)), []).append(alone)  # its module may follow
        return alone

    def __getstate__(self) -> dict[str, object]:
        return {"identity": self.identity, "version": None}


def same_maker(kept: Maker | None, given: Maker, what: str) -> Maker:
    """What a cache notes of the module that it is given to.

    Raises:
        ValueError: Another module made the keys that are kept, or this one with other weights or
            settings.

    Example:
        >>> kept = same_maker(None, Maker(Identity()), "encoder")
        >>> same_maker(kept, Maker(kept.identity), "encoder") is kept
        True
        >>> same_maker(kept, Maker(Identity()), "encoder")
        Traceback (most recent call last):
        ...
        ValueError: The cache holds keys that another encoder made, or this one with other \
encodings. Give each a cache of its own, and begin anew where it changes. Where this one would \
have made the same keys (it is a copy of equal weights, or the cache came from a file), call \
cache.hand_over() first.
    """
    if kept is None:
        return given
    if kept.identity is not given.identity:
        raise ValueError(
            f"The cache holds keys that another {what} made, or this one with other encodings. "
            f"Give each a cache of its own, and begin anew where it changes. Where this one would "
            f"have made the same keys (it is a copy of equal weights, or the cache came from a "
            f"file), call cache.hand_over() first."
        )
    if kept.version is None:
        return kept if given.version is None else given
    if given.version in (None, kept.version):
        return kept
    if given.version.weights != kept.version.weights:
        raise ValueError(
            f"The cache holds keys that this {what} made before its weights were written to or "
            f"cast, as by an optimizer, load_state_dict or to(dtype). Fill a cache anew; where "
            f"older keys are meant, as in a memory kept while training, call cache.hand_over() "
            f"first."
        )
    setting = set_since(kept.version, given.version) or "as a window or a scale"
    raise ValueError(
        f"The cache holds keys that this {what} made before it or a part of it was set to "
        f"something else ({setting}). Set that back, or fill a cache anew; where older keys are "
        f"meant, or this only counts what runs and changes no key, call cache.hand_over() first."
    )
