"""Results of runs whose encodings have changed since: a report shows them, and says so."""

import json
from dataclasses import dataclass, field
from typing import Any

from posenc.lab.configuration import Configuration
from posenc.lab.store import Store


@dataclass
class Results:
    """The result of a configuration: its own, or the last one with another source of encodings.

    A new run is made wherever the source has changed. A report would else lose all that was made
    before a comment became code; it takes what is there, and tells how much of it is earlier. An
    extension is taken beside the very run that it extends.

    Args:
        store: Where results are.

    Attributes:
        earlier: The runs that were answered by an earlier one.
    """

    store: Store
    earlier: set[str] = field(default_factory=set)
    _known: dict[str, dict[str, Any]] | None = None

    def of(self, configuration: Configuration) -> dict[str, Any] | None:
        """What a run gave; None where neither it nor an earlier one is made."""
        own = self.store.result(configuration.id)
        if own is not None and self.base_of(own) is not None:
            return own
        if self._known is None:
            whole = (each for each in self.store.results() if self.base_of(each) is not None)
            ordered = sorted(whole, key=lambda each: each["date"])
            self._known = {_sameness(each["configuration"]): each for each in ordered}
        found = self._known.get(_sameness(configuration.written()))
        if found is not None:
            self.earlier.add(configuration.id)
        return found

    def base_of(self, result: dict[str, Any]) -> dict[str, Any] | None:
        """The result of the run that ``result`` extends, which is ``result`` where it extends none.

        None where that is not kept: what was trained is not known then.
        """
        extension = result["configuration"]["extension"]
        return result if extension is None else self.store.result(extension["of"])


def _sameness(written: dict[str, Any]) -> str:
    """A configuration without what tells sources apart."""
    left = {**written, "version": ""}
    if left["extension"] is not None:
        left["extension"] = {**left["extension"], "version": "", "of": ""}
    return json.dumps(left, sort_keys=True)
